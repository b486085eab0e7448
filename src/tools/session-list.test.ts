import { describe, expect, test } from "vitest";
import { readingWorld, said } from "../../test/support/reading-tools.ts";
import { sessionList } from "./session-list.ts";

describe("session_list", () => {
  test("lists the agent's conversations, including archived ones, with a summary", async () => {
    const world = readingWorld({ secrets: ["tiger-tiger-tiger-tiger"] });
    const bob = await world.create("agent:main:slack:user:U1", { label: "bob" }, [
      said("Plan three days, the word is tiger-tiger-tiger-tiger"),
    ]);
    const group = await world.create("agent:main:slack:group:G1", { archived: true }, [
      said("hello"),
      { type: "session_info", name: "The team" },
    ]);
    await world.create("agent:research:main");
    expect(await world.ask(sessionList)).toEqual({
      count: 2,
      hidden: 0,
      visibility: { mode: "tree", sandboxed: false },
      sessions: [
        {
          key: "slack:group:G1",
          sessionId: group.sessionId,
          channel: "slack",
          peer: "G1",
          summary: "The team",
          updatedAt: group.updatedAt,
        },
        {
          key: "agent:main:slack:user:U1",
          sessionId: bob.sessionId,
          channel: "slack",
          peer: "U1",
          label: "bob",
          summary: "Plan three days, the word is tiger-…iger",
          updatedAt: bob.updatedAt,
        },
      ],
    });
    expect(await world.ask(sessionList, { limit: 1 })).toMatchObject({ count: 1, more: true });
    expect(await world.ask(sessionList, { agentId: "research" })).toMatchObject({
      sessions: [{ key: "agent:research:main", channel: "unknown" }],
    });
  });

  test("lists only what may be listed", async () => {
    const world = readingWorld({ reach: { treeOf: "agent:main:main", agentIds: [] }, sandboxed: true });
    await world.create("agent:main:main");
    await world.create("agent:main:user:bob");
    expect(await world.ask(sessionList)).toMatchObject({ count: 1, sessions: [{ key: "main" }] });
  });
});
