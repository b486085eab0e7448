import { beforeEach, describe, expect, test } from "vitest";
import { Between } from "../../test/support/between.ts";
import { SkeinError } from "../core/errors.ts";
import type { Outcome } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import { sendToSession } from "./send.ts";
import type { Caller } from "./session-access.ts";

let between: Between;
let asker: SessionRecord;
beforeEach(async () => {
  between = new Between();
  asker = await between.session("agent:main:main");
  await between.session("agent:main:session:b");
});
const ask = (caller: Caller, timeoutSeconds = 60) =>
  sendToSession(between.deps, caller, { sessionKey: "session:b", message: "Is it open?", timeoutSeconds });
const pending = { status: "pending", mode: "announce" };

/** Runs `act` during the wait. */
const meanwhile = (act: () => unknown): Pick<Caller, "whileWaiting"> => ({
  whileWaiting: async (_, wait) => {
    const waited = wait();
    await act();
    return { entered: true, value: await waited };
  },
});

describe("waiting for the reply", () => {
  test("[FAM3] returns the reply of this very run, and nothing follows", async () => {
    const caller = between.caller(
      asker,
      meanwhile(() => between.ends({ state: "ok", reply: "Yes." })),
    );
    const result = await ask(caller);
    expect(result).toEqual({ runId: result.runId, status: "ok", sessionKey: "session:b", reply: "Yes." });
    expect(between.accepted[0]).toMatchObject({
      awaitedBy: { by: { owner: "me" }, until: between.books.now + 60_000 },
    });
    expect(await ask(caller)).toEqual(result);
    expect(between.accepted).toHaveLength(1);
  });

  test.each<[Outcome, object]>([
    [{ state: "ok" }, { status: "ok", reply: "" }],
    [
      { state: "error", code: "model_failed", error: "It broke.", reply: "half" },
      { status: "error", code: "model_failed", error: "It broke.", reply: "half" },
    ],
    [{ state: "timeout" }, { status: "error", code: "timeout" }],
    [
      { state: "aborted", error: "Stopped." },
      { status: "aborted", code: "aborted", error: "Stopped." },
    ],
  ])("[FAM3] %j is returned unchanged", async (outcome, result) => {
    const caller = between.caller(
      asker,
      meanwhile(() => between.ends(outcome)),
    );
    expect(await ask(caller)).toMatchObject({ sessionKey: "session:b", ...result });
  });

  test("[FAM4] after the timeout the target continues, which the result states; repeating the call returns the same", async () => {
    const { run } = await between.books.running("ann/x");
    let waits = 0;
    const whileWaiting: Caller["whileWaiting"] = async (_, wait) => {
      waits += 1;
      between.books.now += 60_000;
      return { entered: true, value: await wait() };
    };
    const caller = between.caller(asker, { run, whileWaiting });
    const result = await ask(caller);
    expect(result).toEqual({
      runId: result.runId,
      status: "timeout",
      sessionKey: "session:b",
      note: expect.stringMatching(/60 seconds.*still working.*separate message/),
      delivery: pending,
    });
    expect(between.accepted[0]?.awaitedBy?.by).toEqual({ runId: run.runId });
    expect(await ask(caller)).toEqual(result);
    await between.ends({ state: "ok", reply: "Yes." });
    expect(await ask(caller)).toEqual(result);
    expect(waits).toBe(1);
  });

  test("[FAM4] a reply at the last moment goes to the waiter", async () => {
    const whileWaiting: Caller["whileWaiting"] = async (_, wait) => {
      await between.ends({ state: "ok", reply: "Yes." });
      between.books.now += 61_000;
      return { entered: true, value: await wait() };
    };
    expect(await ask(between.caller(asker, { whileWaiting }))).toMatchObject({ status: "ok", reply: "Yes." });
  });

  test("[FAM4] a reply that arrives at the moment of the timeout still belongs to the waiter", async () => {
    const deaf = (_: string, signal: AbortSignal) =>
      new Promise<never>((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
      );
    const whileWaiting: Caller["whileWaiting"] = async (_, wait) => {
      await between.ends({ state: "ok", reply: "Yes." });
      between.books.now += 61_000;
      return { entered: true, value: await wait() };
    };
    const app = { ...between.deps, untilEnded: deaf };
    const request = { sessionKey: "session:b", message: "Is it open?", timeoutSeconds: 60 };
    const result = await sendToSession(app, between.caller(asker, { whileWaiting }), request);
    expect(result).toMatchObject({ status: "ok", reply: "Yes." });
  });

  test("[FAM4] a reply that was already handed out is not reported twice", async () => {
    const late = meanwhile(async () => {
      between.books.now += 60_001;
      await between.ends({ state: "ok", reply: "Yes." });
    });
    const result = await ask(between.caller(asker, late));
    expect(result).toMatchObject({ status: "timeout", delivery: pending });
    expect(result.reply).toBeUndefined();
  });

  test("[FAM14] a repeated call waits only for the remaining time", async () => {
    const { run } = await between.books.running("ann/x");
    const closing = new AbortController();
    const first = between.caller(asker, {
      run,
      callId: "c",
      signal: closing.signal,
      ...meanwhile(() => closing.abort(new Error("closing"))),
    });
    await expect(ask(first)).rejects.toThrow("closing");
    between.books.now += 59_999;
    const again = between.caller(asker, { run, callId: "c" });
    const [result] = await Promise.all([ask(again), between.ends({ state: "ok", reply: "Yes." })]);
    expect(result).toMatchObject({ status: "ok", reply: "Yes." });
    expect(between.accepted).toHaveLength(1);
  });

  test("[FAM14] a sent message is found again after its target was removed", async () => {
    const caller = between.caller(
      asker,
      meanwhile(() => between.ends({ state: "ok", reply: "Yes." })),
    );
    const result = await ask(caller);
    between.hidden.add("agent:main:session:b");
    expect(await ask(caller)).toEqual(result);
  });

  test("[FAM14] a caller that reuses another caller's call ID gets none of its result", async () => {
    const other = await between.session("agent:main:session:other");
    const shared = { callId: "c", ...meanwhile(() => between.ends({ state: "ok", reply: "Secret." })) };
    await ask(between.caller(asker, shared));
    const result = await ask(between.caller(other, shared));
    expect(result).toMatchObject({ status: "error", code: "conflict" });
    expect(JSON.stringify(result)).not.toContain("Secret");
  });

  test.each<[string, Error, string]>([
    ["the ledger fails", new Error("database is locked"), "late"],
    ["another process has the run", new SkeinError("fenced", { sessionId: "s" }), "open"],
  ])("[FAM14] if %s, the wait is left in the correct state", async (_, error, state) => {
    const { run } = await between.books.running("ann/x");
    const whileWaiting: Caller["whileWaiting"] = () => Promise.reject(error);
    await expect(ask(between.caller(asker, { run, whileWaiting }))).rejects.toThrow(error);
    const [waiting] = await between.books.runs.list({ states: ["queued"] });
    expect(await between.deps.runs.replyWait(waiting?.runId ?? "")).toMatchObject({ state });
  });

  test.each(["a run", "a process"])(
    "[FAM14] if the wait of %s fails after the reply was handed out, the reply is the result",
    async (waiter) => {
      const run = waiter === "a run" ? (await between.books.running("ann/x")).run : null;
      const whileWaiting: Caller["whileWaiting"] = async () => {
        await between.ends({ state: "ok", reply: "Yes." });
        throw new Error("connection lost");
      };
      const result = await ask(between.caller(asker, { run, whileWaiting }));
      expect(result).toMatchObject({ status: "ok", reply: "Yes." });
      expect(await between.books.runs.replyWait(result.runId)).toMatchObject({ state: "taken" });
    },
  );

  test("[FAM6] a wait that would cause a deadlock is not entered", async () => {
    const whileWaiting: Caller["whileWaiting"] = async () => ({ entered: false, cycle: ["a", "b"] });
    const { run } = await between.books.running("ann/x");
    const caller = between.caller(asker, { run, whileWaiting });
    const result = await ask(caller);
    expect(await ask(between.caller(asker, { run, callId: caller.callId }))).toEqual(result);
    expect(result).toEqual({
      runId: result.runId,
      status: "sent",
      sessionKey: "session:b",
      code: "wait_cycle",
      note: expect.stringContaining("waiting"),
      delivery: pending,
    });
    const quick: Caller["whileWaiting"] = async () => {
      await between.ends({ state: "ok", reply: "first" });
      await between.ends({ state: "ok", reply: "Yes." });
      return { entered: false, cycle: [] };
    };
    const taken = await ask(between.caller(asker, { whileWaiting: quick }));
    expect(taken).toMatchObject({ status: "ok", reply: "Yes." });
  });

  test("if an outside caller leaves, the reply goes to the asker's session", async () => {
    const gone = new AbortController();
    const act = meanwhile(() => gone.abort(new Error("gone")));
    const caller = between.caller(asker, { signal: gone.signal, callId: "c", ...act });
    await expect(ask(caller)).rejects.toThrow("gone");
    await between.ends({ state: "ok", reply: "Yes." });
    expect(await ask(between.caller(asker, { callId: "c" }))).toMatchObject({ status: "timeout" });
    expect(between.reports).toEqual([]);
  });

  test("[FAM3] a reply that arrives before two outages in a row is returned after them", async () => {
    const outage = new SkeinError("database_unavailable", { database: "d", problem: "gone", advice: "x" });
    const failOnce = (name: "replyWait" | "stopAwaiting" | "get") => {
      const { runs } = between.deps;
      const call = runs[name] as (runId: string) => Promise<unknown>;
      const failing = async () => {
        Object.assign(runs, { [name]: call });
        throw outage;
      };
      Object.assign(runs, { [name]: failing });
    };
    const whileWaiting: Caller["whileWaiting"] = async () => {
      await between.ends({ state: "ok", reply: "Yes." });
      failOnce("stopAwaiting");
      failOnce("get");
      throw outage;
    };
    const caller = between.caller(asker, { whileWaiting, callId: "c" });
    expect(await ask(caller)).toMatchObject({ status: "ok", reply: "Yes." });
    failOnce("replyWait");
    expect(await ask(between.caller(asker, { callId: "c" }))).toMatchObject({ reply: "Yes." });
    expect(between.reports).toEqual([outage, outage, outage]);
  });
});
