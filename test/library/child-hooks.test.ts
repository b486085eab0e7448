import { afterEach, describe, expect, test } from "vitest";
import { HookRegistry } from "../../src/index.ts";
import { answering, closeAll, withScript } from "../support/skein.ts";

afterEach(closeAll);

const main = { sessionKey: "agent:main:main" };

describe("hooks of children", () => {
  test("[SPN18] a hook is called before a child is created, when it is created and when it has ended", async () => {
    const told: unknown[] = [];
    const hooks = new HookRegistry();
    hooks.on("subagent_spawning", ({ task, label, agentId, ctx }) => {
      told.push(["spawning", task, label, agentId, ctx.sessionKey]);
      return undefined;
    });
    hooks.on("subagent_spawned", ({ childSessionKey }) => void told.push(["spawned", childSessionKey]));
    hooks.on("subagent_ended", ({ outcome, result, ctx }) => {
      told.push(["ended", outcome, result, ctx.sessionKey]);
    });
    const { skein } = await withScript(answering("Done."), {}, { hooks });
    const args = { task: "look", label: "one", background: false };
    const { result, rootId } = await skein.callTool("sessions_spawn", args, main);
    await skein.settled(rootId ?? "");
    expect(result).toMatchObject({ status: "ok", outcome: "ok", result: "Done. 1" });
    const key = expect.stringContaining(":subagent:");
    expect(told).toEqual([
      ["spawning", "look", "one", "main", "agent:main:main"],
      ["spawned", key],
      ["ended", "ok", "Done. 1", "agent:main:main"],
    ]);
  });

  test("[SPN18] a hook may refuse: nothing is created, and the caller gets the reason", async () => {
    const hooks = new HookRegistry();
    hooks.on("subagent_spawning", () => ({ block: "not today" }));
    const { skein } = await withScript(answering(), {}, { hooks });
    const { result, rootId } = await skein.callTool("sessions_spawn", { task: "look" }, main);
    expect(result).toMatchObject({ status: "forbidden", code: "blocked" });
    expect(result.error).toContain("not today");
    expect(rootId).toBeNull();
    expect(await skein.store.sessions.count({}, {})).toBe(1);
  });
});
