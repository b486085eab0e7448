import { afterEach, describe, expect, test } from "vitest";
import type { ModelStep } from "../../src/entry-testing.ts";
import type { Family } from "../support/family.ts";
import { begun, call, calls, desk, gate, lastUser, results, system, withParts } from "../support/family.ts";
import { closeAll, newFolder } from "../support/skein.ts";

afterEach(closeAll);

const a = "agent:main:session:a";
const b = "agent:main:session:b";
const send = (args: object = {}): ModelStep =>
  call("sessions_send", { sessionKey: b, message: "To B: how many?", ...args });
const places = [
  { where: "files", dir: () => ({ dir: newFolder() }) },
  { where: "memory", dir: () => ({}) },
];

async function asked(family: Family, sessionKey = a): Promise<string> {
  await family.make(b);
  const turn = begun(family.skein.session({ sessionKey }).send("Ask B"));
  await turn.result.catch(() => undefined);
  await family.settled(turn.runId);
  return turn.runId;
}

/** Returns how often a session was notified of an answer to its own message. */
const told = (lines: readonly string[]) =>
  lines.filter((line) => line.includes("which you sent a message to, has ended its turn")).length;

describe("the target of a message", () => {
  test.each([
    ["two targets", { sessionKey: b, label: "desk" }, "Provide either sessionKey or label (not both)."],
    ["no target", {}, "Either sessionKey or label is required"],
    ["a label that no session has", { label: "nobody" }, "No session found with label: nobody"],
    ["a key that no session has", { sessionKey: "agent:main:session:c" }, "Session not found"],
    ["the sender itself", { sessionKey: "main" }, "wait for itself"],
  ])("[SND12] is rejected if it is %s", async (_, args, error) => {
    const family = await withParts({});
    await family.make("agent:main:main");
    const { sessionId } = await family.make(b);
    await family.skein.store.sessions.patch({ agentId: "main" }, sessionId, { label: "desk" });
    const result = await family.call("sessions_send", { message: "How many?", ...args });
    expect(result).toMatchObject({ status: "error", error: expect.stringContaining(error) });
    expect(await family.skein.runs.list()).toEqual([]);
    expect((await family.skein.store.sessions.list({}, {})).sessions).toHaveLength(2);
  });
});

describe("an awaited message", () => {
  test.each(places)(
    "[FAM3] returns the reply of its own run, and nothing follows: $where",
    async ({ dir }) => {
      const family = await withParts(
        {
          "Ask B": [send({ timeoutSeconds: 600 }), { text: "Twelve, then." }],
          "To B": [{ text: "Twelve." }],
        },
        dir(),
      );
      await asked(family);
      const [result] = results(family.asked("Ask B")[1]);
      expect(result).toMatchObject({ status: "ok", sessionKey: "session:b", reply: "Twelve." });
      const [run] = await family.runsAt(b);
      expect(result?.runId).toBe(run?.runId);
      expect(run).toMatchObject({ kind: "send", lane: "nested", root: { hops: 1 } });
      expect(await family.runsAt(a)).toHaveLength(1);
      expect(system(family.asked("To B")[0])).toContain(`The message is from another session: ${a}`);
      expect(family.reported).toEqual([]);
    },
  );

  test("[FAM3] is not answered by the target's reply to another session", async () => {
    const { tool, open } = gate();
    const family = await withParts(
      {
        "Ask B": [send({ timeoutSeconds: 600 }), { text: "Good." }],
        Busy: [call("gate"), { text: "For somebody else." }, { text: "Twelve." }],
      },
      { agent: { tools: [tool] } },
    );
    const { until, skein } = family;
    const other = skein.session({ sessionKey: b }).send("Busy");
    await until("run.tool");
    const turn = skein.session({ sessionKey: a }).send("Ask B");
    await until("run.waiting");
    open();
    expect((await other.result).reply).toBe("For somebody else.");
    await turn.result;
    expect(results(family.asked("Ask B")[1])).toMatchObject([{ status: "ok", reply: "Twelve." }]);
  });

  test("[FAM4] is announced later, once, after a timeout", async () => {
    const { tool, open } = gate();
    const family = await withParts(
      {
        "Ask B": [send({ timeoutSeconds: 1 }), { text: "No answer yet." }, { text: "REPLY_SKIP" }],
        "To B": [call("gate"), { text: "Twelve." }],
      },
      { agent: { tools: [tool] }, settings: { session: { agentToAgent: { maxPingPongTurns: 0 } } } },
    );
    await family.make(b);
    const { runId, result } = family.skein.session({ sessionKey: a }).send("Ask B");
    expect((await result).reply).toBe("No answer yet.");
    const [late] = results(family.asked("Ask B")[1]);
    expect(late).toMatchObject({ status: "timeout", delivery: { status: "pending", mode: "announce" } });
    expect(String(late?.note)).toContain("Do not send the message again");
    open();
    await family.settled(runId);
    expect(lastUser(family.asked("Ask B")[2])).toContain("Twelve.");
    expect(told(await family.linesAt(a))).toBe(1);
  });

  test("[FAM5] reports how a turn failed", async () => {
    const family = await withParts({
      "Ask B": [send({ timeoutSeconds: 600 }), { text: "A pity." }],
      "To B": [{ error: { status: 400, message: "bad request" } }],
    });
    await asked(family);
    const [result] = results(family.asked("Ask B")[1]);
    expect(result).toMatchObject({ status: "error", code: "model_failed", sessionKey: "session:b" });
    expect(String(result?.error)).toContain("bad request");
    expect(await family.runsAt(a)).toHaveLength(1);
  });

  test("[FAM5] reports that the target was aborted", async () => {
    const family = await withParts({
      "Ask B": [send({ timeoutSeconds: 600 }), { text: "A pity." }],
      "To B": [{ text: "I begin", stall: true }],
    });
    await family.make(b);
    const turn = family.skein.session({ sessionKey: a }).send("Ask B");
    await family.until("run.delta", ({ sessionKey }) => sessionKey === b);
    const [run] = await family.runsAt(b);
    await family.skein.runs.abort(run?.runId ?? "");
    await turn.result;
    expect(results(family.asked("Ask B")[1])).toMatchObject([{ status: "aborted" }]);
  });

  test("[FAM6] is not awaited if that would cause a deadlock, and both replies arrive", async () => {
    const back = call("sessions_send", { sessionKey: a, message: "Back to A", timeoutSeconds: 600 });
    const family = await withParts(
      {
        "Ask B": [send({ timeoutSeconds: 600 }), { text: "Good." }, { text: "REPLY_SKIP" }],
        "To B": [back, { text: "Twelve." }, { text: "REPLY_SKIP" }],
      },
      { settings: { session: { agentToAgent: { maxPingPongTurns: 0 } } } },
    );
    await asked(family);
    expect(results(family.asked("To B")[1])).toMatchObject([{ status: "sent", code: "wait_cycle" }]);
    expect(results(family.asked("Ask B")[1])).toMatchObject([{ status: "ok", reply: "Twelve." }]);
    expect((await family.linesAt(a)).filter((line) => line === "user: Back to A")).toHaveLength(1);
    expect((await family.skein.runs.list()).every(({ state }) => state === "ok")).toBe(true);
  });

  test("[FAM7] keeps waiting while the target sleeps for its children", async () => {
    const { tool, open } = gate();
    const spawned = calls(["sessions_spawn", { task: "Count the geese" }], ["sessions_yield", {}]);
    const family = await withParts(
      {
        "Ask B": [send({ timeoutSeconds: 600 }), { text: "Good." }],
        "To B": [spawned, { text: "Twelve geese." }],
        "Count the geese": [call("gate"), { text: "12" }],
      },
      { agent: { tools: [tool] } },
    );
    await family.make(b);
    const turn = family.skein.session({ sessionKey: a }).send("Ask B");
    await family.until("run.sleeping", ({ sessionKey }) => sessionKey === b);
    expect((await family.skein.runs.get(turn.runId))?.state).toBe("waiting");
    open();
    await turn.result;
    expect(results(family.asked("Ask B")[1])).toMatchObject([{ status: "ok", reply: "Twelve geese." }]);
  });
});

describe("a message after a restart", () => {
  test("[FAM14] that was awaited is the same message, and its reply belongs to the call", async () => {
    const dir = newFolder();
    const first = await withParts(
      { "Ask B": [send({ timeoutSeconds: 600 })], "To B": [{ text: "I begin", stall: true }] },
      { dir },
    );
    await first.make(b);
    const { runId } = begun(first.skein.session({ sessionKey: a }).send("Ask B"));
    await first.until("run.delta", ({ sessionKey }) => sessionKey === b);
    const before = await first.runsAt(b);
    await first.skein.close({ graceMs: 0 });
    const second = await withParts({ "Ask B": [{ text: "Good." }], "To B": [{ text: "Twelve." }] }, { dir });
    await second.until("run.ended", (event) => event.runId === runId);
    await second.settled(runId);
    expect(results(second.asked("Ask B")[0])).toMatchObject([
      { status: "ok", reply: "Twelve.", runId: before[0]?.runId },
    ]);
    expect(await second.runsAt(b)).toHaveLength(1);
    expect(await second.runsAt(a)).toHaveLength(1);
    expect((await second.linesAt(b)).filter((line) => line === "user: To B: how many?")).toHaveLength(1);
  });

  test("[FAM14] whose call is repeated returns the first result", async () => {
    const dir = newFolder();
    const { tool } = gate();
    const options = { dir, agent: { tools: [tool] } };
    const first = await withParts(
      {
        "Ask B": [calls(["sessions_send", { sessionKey: b, message: "To B" }], ["gate", {}])],
        "To B": [{ text: "REPLY_SKIP" }],
      },
      options,
    );
    await first.make(b);
    const { runId } = begun(first.skein.session({ sessionKey: a }).send("Ask B"));
    await first.until("run.ended", ({ sessionKey }) => sessionKey === b);
    const [sent] = await first.runsAt(b);
    await first.skein.close({ graceMs: 0 });
    const open = gate();
    open.open();
    const second = await withParts(
      { "Ask B": [{ text: "Good." }] },
      { ...options, agent: { tools: [open.tool] } },
    );
    await second.until("run.ended", (event) => event.runId === runId);
    expect(results(second.asked("Ask B")[0])[0]).toMatchObject({ status: "sent", runId: sent?.runId });
    expect(await second.runsAt(b)).toHaveLength(1);
  });
});

describe("the addressee of a message", () => {
  const other = { id: "other" };
  const named = async (family: Family) => {
    await family.make(b);
    await family.skein.store.sessions.patch({ agentId: "main" }, (await family.at(b)).sessionId, {
      label: "the counter",
    });
    await family.make("agent:other:main");
  };
  const answers = { "To B": [{ text: "Twelve." }], "To other": [{ text: "Three." }] };

  test("[FAM11] a label, or only an agent, names a session", async () => {
    const settings = { tools: { agentToAgent: { enabled: true } } };
    const family = await withParts(answers, { agent: { visibility: "all" }, others: [other], settings });
    await named(family);
    const wait = { timeoutSeconds: 600 };
    const byLabel = await family.call("sessions_send", { label: "the counter", message: "To B", ...wait });
    expect(byLabel).toMatchObject({ status: "ok", reply: "Twelve.", sessionKey: "session:b" });
    const byAgent = await family.call("sessions_send", { agentId: "other", message: "To other", ...wait });
    expect(byAgent).toMatchObject({ status: "ok", reply: "Three.", sessionKey: "agent:other:main" });
  });

  test.each([
    { enabled: false, allow: [], code: "agent_to_agent_disabled" },
    { enabled: true, allow: ["other -> main"], code: "agent_to_agent_not_allowed" },
    { enabled: true, allow: ["main -> other"], code: undefined },
  ])("[FAM11] a key of another agent is decided by the pairs: $enabled $allow", async (policy) => {
    const { code, ...agentToAgent } = policy;
    const settings = { tools: { agentToAgent } };
    const family = await withParts(answers, { agent: { visibility: "all" }, others: [other], settings });
    await named(family);
    const args = { sessionKey: "agent:other:main", message: "To other", timeoutSeconds: 600 };
    const result = await family.call("sessions_send", args);
    expect(result.code).toBe(code);
    expect(result.status).toBe(code === undefined ? "ok" : "forbidden");
    expect(await family.runsAt("agent:other:main")).toHaveLength(code === undefined ? 1 : 0);
  });
});

describe("a note", () => {
  const note = { sessionKey: b, message: "I said so.", role: "assistant" };

  test.each(places)("[FAM12] is written at once if the session is idle: $where", async ({ dir }) => {
    const family = await withParts({}, dir());
    await family.make(b);
    const result = await family.call("sessions_send", note);
    expect(result).toMatchObject({ status: "sent" });
    expect(result.delivery).toBeUndefined();
    await family.settled(String(result.runId));
    expect(await family.linesAt(b)).toEqual(["assistant: I said so."]);
    expect(family.model.requests).toHaveLength(0);
  });

  test("[FAM12] is written after the current turn", async () => {
    const { tool, open } = gate();
    const parts = { Work: [call("gate"), { text: "Done." }] };
    const family = await withParts(parts, { agent: { tools: [tool] } });
    const turn = family.skein.session({ sessionKey: b }).send("Work");
    await family.until("run.tool");
    const result = await family.call("sessions_send", note);
    expect(await family.linesAt(b)).not.toContain("assistant: I said so.");
    open();
    await turn.result;
    await family.settled(String(result.runId));
    expect((await family.linesAt(b)).slice(-2)).toEqual(["assistant: Done.", "assistant: I said so."]);
    expect(family.model.requests).toHaveLength(2);
  });
});

describe("limits on messages between sessions", () => {
  test("[FAM13] a pair that sends too much under one root is a loop, with the numbers", async () => {
    const again = send({ timeoutSeconds: 600 });
    const family = await withParts(
      {
        "Ask B": [again, again, again, { text: "Enough." }],
        "To B": [{ text: "One." }, { text: "Two." }, { text: "Three." }],
      },
      { settings: { session: { agentToAgent: { maxPingPongTurns: 0 } } } },
    );
    const runId = await asked(family);
    expect(results(family.asked("Ask B")[3])).toMatchObject([
      {
        status: "error",
        code: "budget_exceeded",
        sessionKey: "session:b",
        budget: { rootId: runId, limit: "pingPong", allowed: 2, figure: 3 },
      },
    ]);
    expect(await family.runsAt(b)).toHaveLength(2);
  });

  test.each([
    { budget: { hops: 1 }, limit: "hops", allowed: 1, figure: 2 },
    { budget: { runs: 2 }, limit: "runs", allowed: 2, figure: 3 },
  ])("[FAM13] beyond $limit a message is refused with the numbers", async ({ budget, ...figures }) => {
    const c = "agent:main:session:c";
    const on = call("sessions_send", { sessionKey: c, message: "To C", timeoutSeconds: 600 });
    const family = await withParts(
      {
        "Ask B": [send({ timeoutSeconds: 600 }), { text: "Good." }],
        "To B": [on, { text: "C is out of reach." }],
      },
      { settings: { budget } },
    );
    await family.make(c);
    const rootId = await asked(family);
    expect(results(family.asked("To B")[1])).toMatchObject([
      { status: "error", code: "budget_exceeded", budget: { rootId, ...figures } },
    ]);
    expect(await family.runsAt(c)).toHaveLength(0);
    expect(results(family.asked("Ask B")[1])).toMatchObject([{ reply: "C is out of reach." }]);
  });
});

describe("an exchange", () => {
  const turns = (count: number) =>
    Array.from({ length: count }, (_, index): ModelStep => ({ text: `Word ${index + 1}.` }));
  const atDesk = "agent:main:desk:user:ann:thread:T9";

  test.each([
    { most: 0, asker: 1, target: 1 },
    { most: 1, asker: 1, target: 1 },
    { most: 5, asker: 3, target: 3 },
  ])("[FAM8] has at most $most turns, the asker first", async ({ most, asker, target }) => {
    const family = await withParts(
      { "Ask B": [send(), { text: "Asked." }, ...turns(9)], "To B": turns(9) },
      { settings: { session: { agentToAgent: { maxPingPongTurns: most } } } },
    );
    await asked(family);
    const announcements = most === 0 ? 0 : 1;
    expect(family.asked("Ask B").length - 2).toBe(asker + announcements);
    expect(family.asked("To B")).toHaveLength(target);
    const kinds = (await family.runsAt(a)).map(({ kind }) => kind);
    const exchanged = Array(most === 0 ? 0 : asker).fill("ping_pong");
    expect(kinds).toEqual(["user", ...exchanged, "announce"]);
    expect(told(await family.linesAt(a))).toBe(most === 0 ? 1 : 0);
    expect(results(family.asked("Ask B")[1])).toMatchObject([{ status: "sent" }]);
  });

  test.each([
    { words: "REPLY_SKIP", target: 1 },
    { words: " REPLY_SKIP\n", target: 1 },
    { words: "", target: 1 },
    { words: "I say REPLY_SKIP", target: 2 },
  ])("[FAM8] ends with REPLY_SKIP, or with an empty reply: $words", async ({ words, target }) => {
    const family = await withParts({
      "Ask B": [send(), { text: "Asked." }, { text: words }, { text: "REPLY_SKIP" }],
      "To B": [{ text: "Twelve." }, { text: "REPLY_SKIP" }],
    });
    await asked(family);
    expect(family.asked("To B")).toHaveLength(target);
  });

  const announcing = async (last: string) => {
    const { channel, told: posted } = desk();
    const family = await withParts(
      {
        "Ask B": [send({ sessionKey: atDesk }), { text: "Asked." }, { text: "REPLY_SKIP" }],
        Morning: [{ text: "Good morning." }, { text: "Twelve." }, { text: last }],
      },
      { channels: [channel], settings: { channels: { desk: { users: { ann: null } } } } },
    );
    const inbound = { channel: "desk", accountId: "acc", peer: "ann", threadId: "T9" };
    await family.skein.receive({ ...inbound, messageId: "m1", text: "Morning" });
    await family.until("outbox.delivered");
    await asked(family);
    return { family, posted };
  };

  test("[TLK2] is followed by a message on the target's channel, with account and thread", async () => {
    const { family, posted } = await announcing("We are twelve.");
    const place = { channel: "desk", to: "ann", accountId: "acc", threadId: "T9" };
    await expect.poll(() => posted).toHaveLength(2);
    expect(posted).toMatchObject([
      { text: "Good morning.", target: place },
      { text: "We are twelve.", target: place },
    ]);
    expect(system(family.asked("Morning")[2])).toContain("Agent-to-agent announce step:");
    expect(family.reported).toEqual([]);
  });

  test("[TLK2] is followed by silence if the target answers ANNOUNCE_SKIP", async () => {
    const { family, posted } = await announcing("ANNOUNCE_SKIP");
    expect(family.asked("Morning")).toHaveLength(3);
    expect((await family.skein.outbox()).map(({ text }) => text)).toEqual(["Good morning."]);
    expect(posted).toHaveLength(1);
  });

  test("[FAM10] is not started between parent and child: the answer is announced", async () => {
    const spawned = call("sessions_spawn", { task: "Stay", mode: "session", background: false });
    const family = await withParts({
      "Ask B": [
        spawned,
        (request) => send({ sessionKey: results(request)[0]?.childSessionKey }),
        { text: "Asked." },
        { text: "So it is twelve." },
      ],
      Stay: [{ text: "I stay." }, { text: "Twelve." }],
    });
    await asked(family);
    expect(family.asked("Stay")).toHaveLength(2);
    expect(lastUser(family.asked("Ask B")[3])).toContain("Twelve.");
    expect(told(await family.linesAt(a))).toBe(1);
    expect((await family.runsAt(a)).map(({ kind }) => kind)).toEqual(["user", "announce"]);
  });
});
