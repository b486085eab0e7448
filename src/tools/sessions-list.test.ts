import fc from "fast-check";
import { Check } from "typebox/value";
import { describe, expect, test } from "vitest";
import { called, everything, readingWorld, said } from "../../test/support/reading-tools.ts";
import { SessionRowSchema } from "../protocol/session-list.ts";
import type { ToolResult } from "./session-tool.ts";
import { sessionsList } from "./sessions-list.ts";

type Row = Record<string, unknown> & { key: string; messages?: { content: unknown }[] };
const rowsOf = (result: ToolResult) => result.sessions as Row[];
const keysOf = (result: ToolResult) => rowsOf(result).map(({ key }) => key);
const ofMain = { treeOf: "agent:main:main", agentIds: [] };

describe("sessions_list", () => {
  test("applies visibility, kinds and filters before the limit, newest first", async () => {
    const world = readingWorld({ reach: { treeOf: null, agentIds: ["main"] } });
    for (let job = 0; job < 30; job++) await world.create(`agent:main:cron:job${job}`);
    for (let peer = 0; peer < 30; peer++) await world.create(`agent:main:user:p${peer}`);
    for (let job = 0; job < 30; job++) await world.create(`agent:other:cron:job${job}`);
    const result = await world.ask(sessionsList, { kinds: ["CRON"], limit: 3 });
    expect(keysOf(result)).toEqual(["cron:job29", "cron:job28", "cron:job27"]);
    const next = await world.ask(sessionsList, { kinds: ["cron"], limit: 3, cursor: result.nextCursor });
    expect(keysOf(next)).toEqual(["cron:job26", "cron:job25", "cron:job24"]);
    expect(await world.ask(sessionsList, { kinds: [], limit: 200 })).toMatchObject({ count: 60, hidden: 30 });
  });

  test("an unknown kind is refused with the known kinds", async () => {
    const refused = readingWorld().ask(sessionsList, { kinds: ["main", "chat"] });
    await expect(refused).rejects.toMatchObject({
      code: "invalid_arguments",
      path: "kinds",
      message: '"chat" is not a session kind. Use one of main, group, cron, hook, node, other.',
    });
  });

  test("filters by search, label, agent, archived state and activity", async () => {
    const world = readingWorld();
    const old = await world.create("agent:main:session:kyoto", { label: "trip" }, [said("a")]);
    world.now += 10 * 60_000;
    await world.create("agent:main:session:osaka", { archived: true });
    await world.create("agent:research:main");
    await world.store.sessions.patch({}, old.sessionId, { displayName: "Kyoto in May" });
    expect(keysOf(await world.ask(sessionsList, { search: "in may" }))).toEqual(["session:kyoto"]);
    expect(keysOf(await world.ask(sessionsList, { label: "trip" }))).toEqual(["session:kyoto"]);
    expect(keysOf(await world.ask(sessionsList, { archived: true }))).toEqual(["session:osaka"]);
    expect(keysOf(await world.ask(sessionsList, { agentId: "Research" }))).toEqual(["agent:research:main"]);
    // A metadata change is not activity.
    expect(keysOf(await world.ask(sessionsList, { activeMinutes: 5 }))).toEqual(["agent:research:main"]);
  });

  test("never shows unknown, and shows global if all senders share it", async () => {
    for (const scope of ["per-sender", "global"] as const) {
      const world = readingWorld({ scope });
      await world.create("global");
      await world.create("unknown");
      expect((await world.ask(sessionsList)).count).toBe(scope === "global" ? 1 : 0);
    }
  });

  test("tool messages do not count, however many there are", async () => {
    const world = readingWorld();
    const calls = Array.from({ length: 700 }, (_, index) => called(`c${index}`)).flat();
    await world.create("agent:main:main", {}, [said("first"), said("second", "assistant"), ...calls]);
    const [row] = rowsOf(await world.ask(sessionsList, { messageLimit: 5 }));
    expect(row?.messages).toMatchObject([{ role: "user", content: "first" }, { role: "assistant" }]);
    const [last] = rowsOf(await world.ask(sessionsList, { messageLimit: 1 }));
    expect(last?.messages).toMatchObject([{ content: [{ type: "text", text: "second" }] }]);
    expect(rowsOf(await world.ask(sessionsList))[0]).not.toHaveProperty("messages");
  });

  test("messages are redacted and shortened as in history", async () => {
    const world = readingWorld({ secrets: ["tiger-tiger-tiger-tiger"] });
    await world.create("agent:main:main", {}, [said(`tiger-tiger-tiger-tiger ${"x".repeat(9000)}`)]);
    const [row] = rowsOf(await world.ask(sessionsList, { messageLimit: 1 }));
    expect(row?.messages?.[0]?.content).toMatch(/^tiger-…iger x+\n…\(truncated\)…$/);
  });

  test("a session that cannot be read affects only its own row", async () => {
    const failing = new Set<string>();
    let [open, most] = [0, 0];
    const world = readingWorld({
      sessions: (real) => ({
        page: async (...args) => {
          open += 1;
          most = Math.max(most, open);
          const page = await real.page(...args);
          open -= 1;
          if (failing.has(args[1])) throw new Error(`EIO: /secret/place/${args[1]}.jsonl`);
          return page;
        },
      }),
    });
    for (let index = 0; index < 100; index++) {
      const { sessionId } = await world.create(`agent:main:user:p${index}`, {}, [said(`hello ${index}`)]);
      if (index === 42) failing.add(sessionId);
    }
    const rows = rowsOf(await world.ask(sessionsList, { messageLimit: 1 }));
    const broken = rows.filter((row) => row.messagesError !== undefined);
    expect(broken.map(({ key }) => key)).toEqual(["agent:main:user:p42"]);
    expect(broken[0]?.messagesError).not.toContain("/secret");
    expect(rows.filter((row) => row.messages?.length === 1)).toHaveLength(99);
    expect(world.reported).toHaveLength(1);
    expect(most).toBe(4);
  });

  test("a session that may be listed but not read has no messages, and a reason", async () => {
    const world = readingWorld({ reach: { list: everything, history: ofMain } });
    await world.create("agent:main:main", {}, [said("mine")]);
    await world.create("agent:main:user:bob", {}, [said("his")]);
    const [bob, main] = rowsOf(await world.ask(sessionsList, { messageLimit: 3 }));
    expect(bob).toMatchObject({ messagesRefused: "tree_visibility_restricted" });
    expect(bob).not.toHaveProperty("messages");
    expect(main).toMatchObject({ messages: [{ content: "mine" }] });
  });

  test("a row has the activity of runs, with the asker's short keys", async () => {
    const work = new Map();
    const world = readingWorld({ work });
    const parent = await world.create("agent:main:main", {}, [said("x")]);
    const child = await world.create(`agent:research:subagent:${parent.sessionId}:s1`, {
      spawnedBy: parent.key,
    });
    work.set(parent.uid, { status: "running", startedAt: parent.updatedAt - 500, endedAt: null });
    work.set(child.uid, { status: "timeout", startedAt: 10, endedAt: 30 });
    const rows = rowsOf(await world.ask(sessionsList));
    expect(rows).toMatchObject([
      { key: "subagent:s1", spawnedBy: "main", status: "timeout", startedAt: 10, endedAt: 30, runtimeMs: 20 },
      { key: "main", childSessions: ["subagent:s1"], status: "running", runtimeMs: 500 },
    ]);
    expect(rows[1]?.transcriptPath).toBe(`/sessions/${parent.sessionId}.jsonl`);
    for (const row of rows) {
      expect(Check(SessionRowSchema, row)).toBe(true);
      expect(Object.values(row)).not.toContain(null);
    }
    expect(rows[1]).not.toHaveProperty("endedAt");
  });

  test.each([
    [{ treeOf: "agent:main:main", agentIds: ["main"] }, ["agent:main:user:bob", "main"]],
    [{ treeOf: "agent:main:main", descendants: false, agentIds: [] }, ["main"]],
  ])("with %j a row names no child that may not be listed", async (reach, keys) => {
    const world = readingWorld({ reach });
    for (const key of ["agent:main:main", "agent:main:user:bob"]) {
      const { sessionId } = await world.create(key);
      await world.create(`agent:research:subagent:${sessionId}:of-${key.slice(-3)}`, { spawnedBy: key });
    }
    const rows = rowsOf(await world.ask(sessionsList)).filter(({ key }) => !key.startsWith("subagent:"));
    expect(rows.map(({ key }) => key)).toEqual(keys);
    expect(JSON.stringify(rows)).not.toContain("of-bob");
    expect(JSON.stringify(rows).includes("of-ain")).toBe(reach.agentIds.length > 0);
  });

  test("labels and names are redacted, keys are not", async () => {
    const world = readingWorld({ secrets: ["tiger-tiger-tiger-tiger"] });
    const key = "agent:main:session:tiger-tiger-tiger-tiger";
    await world.create(key, { label: "tiger-tiger-tiger-tiger", delivery: { channel: "slack", to: "C1" } });
    expect(rowsOf(await world.ask(sessionsList))[0]).toMatchObject({
      key: "session:tiger-tiger-tiger-tiger",
      label: "tiger-…iger",
      deliveryContext: { channel: "slack", to: "C1" },
    });
  });

  test("[TLK17] sessions hidden by policy are counted with the same kinds", async () => {
    const world = readingWorld({ reach: ofMain });
    await world.create("agent:main:main");
    for (let peer = 0; peer < 3; peer++) await world.create(`agent:main:user:p${peer}`);
    await world.create("agent:main:cron:daily");
    expect(await world.ask(sessionsList)).toMatchObject({
      count: 1,
      hidden: 4,
      visibility: { mode: "tree", sandboxed: false },
    });
    expect(await world.ask(sessionsList, { kinds: ["cron"] })).toMatchObject({ count: 0, hidden: 1 });
  });

  test("[TLK17] counts up to a thousand, and never for a sandboxed asker", async () => {
    const count = async (_scope: object, query: { reach?: unknown }) =>
      query.reach === undefined ? 5000 : 1;
    const hidden = async (reach?: typeof ofMain) =>
      (await readingWorld({ sessions: () => ({ count }), ...(reach && { reach }) }).ask(sessionsList)).hidden;
    expect(await hidden(ofMain)).toBe(1000);
    expect(await hidden(), "where everything is within reach nothing is counted").toBe(0);
    const boxed = await readingWorld({ sandboxed: true, reach: ofMain }).ask(sessionsList);
    expect(boxed).toEqual({ count: 0, sessions: [], visibility: { mode: "tree", sandboxed: true } });
  });

  test("[ACC4] the result for a sandboxed asker does not depend on invisible sessions", async () => {
    const place = fc.record({
      isChild: fc.boolean(),
      archived: fc.boolean(),
      label: fc.option(fc.constantFrom("a", "b"), { nil: undefined }),
    });
    const given = async (others: { isChild: boolean; archived: boolean; label?: string | undefined }[]) => {
      const world = readingWorld({ sandboxed: true, reach: ofMain });
      const outside = await world.create("agent:main:user:boss");
      const own = { spawnedBy: outside.key };
      const { sessionId } = await world.store.sessions.create(
        {},
        { key: "agent:main:main", sessionId: "own", cwd: "/w", meta: own },
      );
      await world.store.sessions.append({}, sessionId, [{ draft: said("hello") }]);
      world.now = 2_000_000_000;
      await world.store.sessions.create(
        {},
        {
          key: "agent:main:subagent:own:c1",
          sessionId: "c1",
          cwd: "/w",
          meta: { spawnedBy: "agent:main:main" },
        },
      );
      for (const [index, { isChild, archived, label }] of others.entries()) {
        await world.create(`agent:other:user:u${index}`, {
          archived,
          ...(isChild ? { spawnedBy: outside.key } : {}),
          ...(label === undefined || others.findIndex((other) => other.label === label) < index
            ? {}
            : { label }),
        });
      }
      world.now = 3_000_000_000;
      const answers = [
        {},
        { limit: 1 },
        { label: "a" },
        { messageLimit: 2 },
        { search: "u" },
        { archived: true },
      ];
      const results = [];
      for (const args of answers) results.push(await world.ask(sessionsList, args));
      const json = JSON.stringify(results);
      // IDs generated by a store differ between the two worlds.
      return json.replaceAll(/"id":"[^"]*"/g, "").replaceAll(/("nextCursor":"\d+)[^"]*/g, "$1");
    };
    const alone = await given([]);
    expect(alone).toContain("subagent:c1");
    for (const outside of ["boss", "hidden", "transcriptPath"]) expect(alone).not.toContain(outside);
    await fc.assert(
      fc.asyncProperty(fc.array(place, { maxLength: 6 }), async (others) => {
        expect(await given(others)).toBe(alone);
      }),
      { numRuns: 25 },
    );
  });
});
