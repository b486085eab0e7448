import { afterEach, describe, expect, test } from "vitest";
import type { ModelStep } from "../../src/entry-testing.ts";
import type { Family } from "../support/family.ts";
import { announced, call, gate, results, withParts } from "../support/family.ts";
import { repetitions } from "../support/repetitions.ts";
import { closeAll, newFolder } from "../support/skein.ts";

afterEach(closeAll);

const { messagesAtOnce } = repetitions;
const main = "agent:main:main";
const key = (name: string) => `agent:main:session:${name}`;
const to = (name: string, message: string, more: object = {}): ModelStep =>
  call("sessions_send", { sessionKey: key(name), message, ...more });

async function openRuns({ skein }: Family) {
  return (await skein.runs.list({ limit: 200 })).filter(({ state }) =>
    ["queued", "running", "waiting", "sleeping"].includes(state),
  );
}

async function allEnded(family: Family): Promise<number> {
  expect(await openRuns(family)).toEqual([]);
  return (await family.skein.runs.list({ limit: 200 })).length;
}

describe("loops", () => {
  test("[ATK10] exchanges started by both sides at once end", async () => {
    const talk = (first: ModelStep) => (_: unknown, index: number) =>
      index === 0 ? first : { text: `Word ${index}.` };
    const family = await withParts(
      {
        "Ask B": talk(to("b", "To B: how many?")),
        "Ask A": talk(to("a", "To A: how many?")),
      },
      { dir: newFolder() },
    );
    const turns = [
      family.skein.session({ sessionKey: key("a") }).send("Ask B"),
      family.skein.session({ sessionKey: key("b") }).send("Ask A"),
    ];
    await Promise.all(turns.map(({ result }) => result));
    await Promise.all(turns.map(({ runId }) => family.settled(runId)));
    // For each root: the question, its answer, five turns, and the announcement to the requester.
    expect(await allEnded(family)).toBeLessThanOrEqual(2 * 8);
    for (const { runId } of turns) {
      expect((await family.skein.budget(runId))?.runs).toBeLessThanOrEqual(8);
    }
    for (const [name, said] of [
      ["a", "To A: how many?"],
      ["b", "To B: how many?"],
    ] as const) {
      const lines = await family.linesAt(key(name));
      expect(lines.filter((line) => line === `user: ${said}`)).toHaveLength(1);
    }
    expect(family.reported).toEqual([]);
  });

  test.each([
    { budget: { hops: 2 }, turns: 0, limit: "hops" },
    { budget: { runs: 5 }, turns: 0, limit: "runs" },
    { budget: {}, turns: 5, limit: "pingPong|hops|runs" },
  ])(
    "[ATK10] a ring of three ends at its limits, and names the limit: $limit",
    async ({ budget, turns, limit }) => {
      const refused: Record<string, unknown>[] = [];
      const next: Record<string, string> = { a: "b", b: "c", c: "a" };
      const member = (name: string) => (request: Parameters<typeof results>[0]) => {
        const isAnswered = request?.prompt.at(-1)?.role === "tool";
        if (!isAnswered) return to(next[name] ?? "", `On to ${next[name]}`);
        refused.push(...results(request).filter(({ status }) => status !== "sent"));
        return { text: "Passed on." };
      };
      const family = await withParts(
        { "Begin at a": member("a"), "On to b": member("b"), "On to c": member("c") },
        { dir: newFolder(), settings: { budget, session: { agentToAgent: { maxPingPongTurns: turns } } } },
      );
      await family.make(key("b"));
      await family.make(key("c"));
      const turn = family.skein.session({ sessionKey: key("a") }).send("Begin at a");
      await turn.result;
      await family.settled(turn.runId);
      expect(await allEnded(family)).toBeLessThanOrEqual(120);
      expect(refused.length).toBeGreaterThan(0);
      for (const { status, code, budget: figures, error } of refused) {
        expect({ status, code }).toEqual({ status: "error", code: "budget_exceeded" });
        expect(figures).toMatchObject({
          rootId: turn.runId,
          limit: expect.stringMatching(limit),
          allowed: expect.any(Number),
          figure: expect.any(Number),
        });
        expect(String(error)).not.toBe("");
      }
      expect(family.reported).toEqual([]);
    },
  );
});

describe("races", () => {
  test(`[ATK11] ${messagesAtOnce} concurrent messages to one session are written once each, in the order of acceptance`, async () => {
    const family = await withParts(
      { "": () => ({ text: "REPLY_SKIP" }), Number: () => ({ text: "REPLY_SKIP" }) },
      { dir: newFolder() },
    );
    await family.make(key("inbox"));
    await family.make(main);
    const sent = await Promise.all(
      Array.from({ length: messagesAtOnce }, (_, index) =>
        family.call("sessions_send", { sessionKey: key("inbox"), message: `Number ${index}` }),
      ),
    );
    expect(sent.every(({ status }) => status === "sent")).toBe(true);
    await Promise.all(sent.map(({ runId }) => family.settled(String(runId))));
    const { uid } = await family.at(key("inbox"));
    const accepted = (await family.skein.runs.list({ sessionUid: uid, limit: 500 }))
      .toReversed()
      .map(({ message }) => `user: ${"content" in message ? String(message.content) : ""}`);
    const lines = (await family.linesAt(key("inbox"))).filter((line) => line.startsWith("user: "));
    expect(lines).toHaveLength(messagesAtOnce);
    expect(new Set(lines).size).toBe(messagesAtOnce);
    expect(lines).toEqual(accepted);
    expect(family.reported).toEqual([]);
  });

  test("[FAM35] of two spawns for the last run of a root, one is created", async () => {
    const dir = newFolder();
    const { tool, open } = gate();
    const settings = { budget: { runs: 2 } };
    const spawn = { name: "sessions_spawn", arguments: { task: "Geese" } };
    const family = await withParts(
      {
        Plan: [{ calls: [spawn, spawn] }, { text: "One." }, { text: "Done." }],
        Geese: [call("gate"), { text: "12" }],
      },
      { dir, settings, agent: { tools: [tool] } },
    );
    const turn = family.skein.session().send("Plan");
    await turn.result;
    open();
    await family.settled(turn.runId);
    const told = results(family.asked("Plan")[1]);
    expect(told.map(({ status }) => status).toSorted()).toEqual(["error", "ok"]);
    expect(told.find(({ status }) => status === "error")).toMatchObject({
      code: "budget_exceeded",
      budget: { rootId: turn.runId, limit: "runs", allowed: 2, figure: 3 },
    });
    expect(family.asked("Geese")).toHaveLength(2);
    await allEnded(family);
  });
});

describe("call IDs", () => {
  test("[ATG8] an idempotency key belongs to one tool, one session and one user", async () => {
    const family = await withParts(
      { Look: () => ({ text: "Seen." }), Heard: () => ({ text: "REPLY_SKIP" }) },
      { dir: newFolder(), settings: { session: { agentToAgent: { maxPingPongTurns: 0 } } } },
    );
    const { skein } = family;
    const idempotencyKey = "order-17";
    const users = [undefined, "ann", "bob"].map((userId) => (userId === undefined ? {} : { userId }));
    const askers = users.flatMap((user) => [
      { ...user, sessionKey: key("one") },
      { ...user, sessionKey: key("two") },
    ]);
    for (const user of users) {
      await skein.store.sessions.create({ ...user, agentId: "main" }, { key: key("target"), cwd: "/" });
    }
    const tools = [
      ["sessions_send", { sessionKey: key("target"), message: "Heard?" }],
      ["sessions_spawn", { task: "Look" }],
    ] as const;
    const made = async () => {
      const ids: string[] = [];
      for (const asker of askers) {
        for (const [name, args] of tools) {
          const { result, rootId } = await skein.callTool(name, args, { ...asker, idempotencyKey });
          expect(result.status).toBe(name === "sessions_send" ? "sent" : "ok");
          ids.push(String(result.runId));
          await skein.settled(rootId ?? "");
        }
      }
      return ids;
    };
    const first = await made();
    expect(new Set(first).size).toBe(askers.length * tools.length);
    expect(await made()).toEqual(first);
  });

  test("[ATG8] equal call IDs in two messages of a model are two calls", async () => {
    const spawn = (task: string): ModelStep => ({
      calls: [{ name: "sessions_spawn", id: "call_1", arguments: { task, background: false } }],
    });
    const send = (message: string): ModelStep => ({
      calls: [
        {
          name: "sessions_send",
          id: "call_1",
          arguments: { sessionKey: key("b"), message, timeoutSeconds: 600 },
        },
      ],
    });
    const family = await withParts(
      {
        Plan: [spawn("Geese"), spawn("Ducks"), send("To B: one"), send("To B: two"), { text: "Done." }],
        Geese: [{ text: "12 geese" }],
        Ducks: [{ text: "5 ducks" }],
        "To B": [{ text: "First." }, { text: "Second." }],
      },
      { dir: newFolder() },
    );
    await family.make(key("b"));
    await family.skein.session().send("Plan").result;
    const told = [1, 2, 3, 4].map((at) => results(family.asked("Plan")[at])[0]);
    expect(told.map((result) => result?.result ?? result?.reply)).toEqual([
      "12 geese",
      "5 ducks",
      "First.",
      "Second.",
    ]);
    expect(new Set(told.map((result) => result?.runId)).size).toBe(4);
  });
});

describe("sessions that are removed while others work for them", () => {
  const spawn = (task: string): ModelStep => call("sessions_spawn", { task });

  test("[ATK14] the child of a parent that was reset is announced in the session that now has its key", async () => {
    const { tool, open } = gate();
    const family = await withParts(
      {
        "A session that you spawned": [{ text: "I see." }],
        Plan: [spawn("Geese"), { text: "It is on it." }],
        Geese: [call("gate"), { text: "12 geese" }],
      },
      { dir: newFolder(), agent: { tools: [tool] } },
    );
    const turn = family.skein.session().send("Plan");
    await turn.result;
    await family.until("run.tool");
    const old = await family.at(main);
    const { fresh } = await family.skein.store.sessions.reset({ agentId: "main" }, old.sessionId);
    open();
    await family.settled(turn.runId);
    expect((await family.at(main)).sessionId).toBe(fresh.sessionId);
    const lines = await family.linesAt(main);
    expect(announced(lines)).toBe(1);
    expect(lines.at(-1)).toBe("assistant: I see.");
    expect(announced(await family.lines(old.sessionId))).toBe(0);
    await allEnded(family);
    expect(family.reported).toEqual([]);
  });

  test("[ATK14] messages for a removed parent go to the parent of that session", async () => {
    const { tool, open } = gate();
    const family = await withParts(
      {
        Plan: (_, index) => (index === 0 ? spawn("Middle") : { text: `I see ${index}.` }),
        Middle: [spawn("Geese"), { text: "It is on it." }],
        Geese: [call("gate"), { text: "12 geese" }],
      },
      { dir: newFolder(), agent: { tools: [tool], subagents: { maxSpawnDepth: 2 } } },
    );
    const turn = family.skein.session().send("Plan");
    await turn.result;
    await family.until("run.tool", ({ sessionKey }) => sessionKey !== main);
    const [middle] = await family.skein.runs.list({ startedBy: turn.runId });
    await family.until("run.ended", ({ runId }) => runId === middle?.runId);
    await family.skein.store.sessions.remove({ agentId: "main" }, middle?.session.sessionId ?? "");
    open();
    await family.settled(turn.runId);
    const lines = await family.linesAt(main);
    expect(announced(lines)).toBe(2);
    expect(lines.filter((line) => line.includes("12 geese"))).toHaveLength(1);
    await allEnded(family);
  });

  test("[ATK14] without any target it becomes a dead letter of the child", async () => {
    const { tool, open } = gate();
    const family = await withParts(
      {
        Plan: [spawn("Geese"), { text: "It is on it." }],
        Geese: [call("gate"), { text: "12 geese" }],
      },
      { dir: newFolder(), agent: { tools: [tool] } },
    );
    const turn = family.skein.session().send("Plan");
    await turn.result;
    await family.until("run.tool");
    await family.skein.store.sessions.remove({ agentId: "main" }, (await family.at(main)).sessionId);
    open();
    await family.settled(turn.runId);
    await expect.poll(async () => (await family.skein.outbox()).map(({ state }) => state)).toEqual(["dead"]);
    const [letter] = await family.skein.outbox();
    expect(letter).toMatchObject({ target: { channel: "session", to: main }, lastError: expect.any(String) });
    expect(letter?.text).toContain("12 geese");
    const [run] = await family.skein.runs.list({ startedBy: turn.runId });
    const childLines = () => family.linesAt(run?.session.key ?? "");
    await expect.poll(async () => (await childLines()).at(-1)).toContain("was not delivered");
    await expect.poll(() => openRuns(family)).toEqual([]);
  });
});

describe("users", () => {
  test("[ATK15] run IDs of another user lead nowhere", async () => {
    const { tool, open } = gate();
    const other = { userId: "bob", sessionKey: main };
    const named: string[] = [];
    const family = await withParts(
      {
        "Plan of bob": [call("sessions_spawn", { task: "Geese" }), { text: "On it." }, { text: "Good." }],
        Geese: [call("gate"), { text: "12 geese" }],
        "Plan of ann": [() => call("sessions_yield", { waitFor: named }), { text: "No." }],
      },
      { dir: newFolder(), agent: { tools: [tool], visibility: "all" } },
    );
    const { skein } = family;
    const turn = skein.session(other).send("Plan of bob");
    await turn.result;
    const [child] = await skein.runs.list({ startedBy: turn.runId });
    const runId = child?.runId ?? "";
    const unknown = "00000000-0000-7000-8000-000000000000";
    named.push(runId, unknown);
    const ann = { userId: "ann", sessionKey: main };
    await skein.session(ann).send("Plan of ann").result;
    const [yielded] = results(family.asked("Plan of ann")[1]);
    expect(yielded).toMatchObject({ status: "error", code: "not_found" });
    // The error is the same as for a session that never existed.
    expect(String(yielded?.error)).toContain(`Runs not found: ${runId}, ${unknown}`);
    for (const action of ["kill", "steer"]) {
      const told = async (target: string) => {
        const args = { action, target, message: "Stop" };
        const { result } = await skein.callTool("subagents", args, ann);
        return "error" in result ? { ...result, error: String(result.error).replace(target, "it") } : result;
      };
      expect(await told(runId)).toEqual(await told(unknown));
      expect(await told(child?.session.key ?? "")).toMatchObject({ code: "not_found" });
    }
    expect(await skein.runs.get(runId, "ann")).toBeNull();
    await expect(skein.runs.abort(runId, "ann")).rejects.toMatchObject({ code: "not_found" });
    expect(await skein.outbox({}, "ann")).toEqual([]);
    expect((await skein.runs.get(runId))?.state).toMatch(/running|waiting|queued/);
    open();
    await family.settled(turn.runId);
    expect((await skein.runs.get(runId))?.state).toBe("ok");
  });
});

describe("agents of another process", () => {
  test("[ATK19] a message to their sessions waits for a process that has them, and blocks no other session", async () => {
    const dir = newFolder();
    const settings = { tools: { agentToAgent: { enabled: true } } };
    const parts = { "To far": [{ text: "Here I am." }], Hello: [{ text: "Hi." }] };
    const options = { dir, settings, agent: { visibility: "all" as const } };
    const first = await withParts(parts, options);
    await first.make("agent:far:main");
    const message = { agentId: "far", message: "To far" };
    const sent = await first.call("sessions_send", message);
    expect(sent).toMatchObject({ status: "sent", sessionKey: "agent:far:main" });
    const late = await first.call("sessions_send", { ...message, timeoutSeconds: 1 });
    expect(late).toMatchObject({ status: "timeout" });
    expect((await first.skein.session({ sessionKey: key("b") }).send("Hello").result).reply).toBe("Hi.");
    expect((await first.skein.runs.get(String(sent.runId)))?.state).toBe("queued");
    const spawned = await first.call("sessions_spawn", { task: "To far", agentId: "far" });
    expect(spawned).toMatchObject({ status: expect.stringMatching(/forbidden|error/) });
    await first.skein.close({ graceMs: 0 });
    const answers = (_: unknown, index: number) => ({ text: index === 0 ? "Here I am." : "REPLY_SKIP" });
    const second = await withParts(
      { "To far": answers, "": () => ({ text: "REPLY_SKIP" }) },
      { ...options, others: [{ id: "far" }] },
    );
    await second.settled(String(sent.runId));
    await second.settled(String(late.runId));
    const lines = await second.linesAt("agent:far:main");
    expect(lines.filter((line) => line === "user: To far")).toHaveLength(2);
    await allEnded(second);
  });
});
