import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { RunBooks } from "../../../test/support/run-books.ts";
import { refused } from "../../conformance/expect.ts";
import { runScript, valueScript } from "../../core/script.ts";
import { findCycle } from "./hold-run.ts";

let books: RunBooks;
beforeEach(() => {
  books = new RunBooks();
});
const usage = { input: 5, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 10, costUsd: 0.5 };

describe("steering", () => {
  test("[LIB8] steered input is merged, and shares the outcome of the run that took it", async () => {
    const claim = await books.running("s");
    const more = await books.accept("s", { root: { rootId: "other", hops: 4 } });
    const next = await books.accept("s", { queueMode: "followup" });
    const shaped = await books.accept("s", { options: { outputSchema: { type: "object" } } });
    await books.accept("t", { kind: "cron", queueMode: "steer" });
    expect((await books.runs.steerable(claim.held)).map(({ runId }) => runId)).toEqual([more.runId]);
    await books.runs.mergeInput(claim.held, more.runId);
    await books.runs.mergeInput(claim.held, more.runId);
    expect(await books.runs.get(more.runId)).toMatchObject({ state: "merged", mergedInto: claim.run.runId });
    expect((await books.runs.get(claim.run.runId))?.root.hops).toBe(4);
    // They stay merged after the run is requeued and claimed again.
    await books.runs.release(claim.held);
    const again = await books.claim();
    expect(again.run.runId).toBe(claim.run.runId);
    books.told();
    await books.runs.end(again.held, { state: "ok", reply: "both" });
    expect(await books.runs.get(more.runId)).toMatchObject({ state: "merged", outcome: { reply: "both" } });
    const ends = books.events.filter(({ type }) => type === "run.ended");
    expect(ends).toMatchObject([
      { state: "ok" },
      { state: "merged", mergedInto: claim.run.runId, runId: more.runId },
    ]);
    expect(await books.stateOf(next.runId)).toBe("queued");
    expect(await books.stateOf(shaped.runId)).toBe("queued");
  });

  test("[LIB18] input with another delivery target than the running turn is not steered into it", async () => {
    const here = { channel: "desk", to: "ann", threadId: "t1" };
    const claim = await books.running("s", { options: { deliverTo: here } });
    const same = await books.accept("s", {
      options: { deliverTo: { threadId: "t1", to: "ann", channel: "desk" } },
    });
    const nobody = await books.accept("s");
    for (const other of [{ threadId: "t2" }, { to: "bob" }, { channel: "phone" }, { accountId: "two" }])
      await books.accept("s", { options: { deliverTo: { ...here, ...other } } });
    const offered = await books.runs.steerable(claim.held);
    expect(offered.map(({ runId }) => runId)).toEqual([same.runId, nobody.runId]);
    const silent = await books.running("t");
    await books.accept("t", { options: { deliverTo: here } });
    expect(await books.runs.steerable(silent.held)).toEqual([]);
  });

  test("[LIB21] a turn with several inputs charges every root", async () => {
    const claim = await books.running("s");
    const more = await books.accept("s");
    await books.runs.mergeInput(claim.held, more.runId);
    await books.runs.charge(claim.held, usage);
    await books.runs.charge(claim.held, usage);
    for (const { runId } of [claim.run, more]) {
      expect(await books.runs.budget(runId)).toMatchObject({ tokens: 20, costUsd: 1, runs: 1 });
    }
    expect((await books.runs.get(claim.run.runId))?.usage).toEqual({
      ...usage,
      input: 10,
      output: 10,
      totalTokens: 20,
      costUsd: 1,
    });
  });

  test("[LIB21] over the token limit, a charge is refused and the spent tokens are recorded", async () => {
    const tight = new RunBooks({ limits: { hops: 8, runs: 100, tokens: 15, costUsd: null, pingPong: 5 } });
    const claim = await tight.running("s");
    await tight.runs.charge(claim.held, usage);
    await refused("budget_exceeded", () => tight.runs.charge(claim.held, usage));
    expect((await tight.runs.budget(claim.run.runId))?.tokens).toBe(20);
    await refused("fenced", () => tight.runs.charge({ ...claim.held, fence: 7 }, usage));
  });
});

describe("waiting", () => {
  test("[FAM6] a wait frees the slot; one that would cause a deadlock is not entered", async () => {
    const a = await books.running("a");
    const b = await books.running("b");
    const toB = await books.accept("b", { kind: "send", startedBy: a.run.runId });
    const toA = await books.accept("a", { kind: "send", startedBy: b.run.runId });
    books.told();
    expect(await books.runs.wait(a.held, { for: "run", runIds: [toB.runId] })).toEqual({ entered: true });
    expect(books.told()).toEqual(["run.waiting"]);
    expect(await books.runs.wait(b.held, { for: "run", runIds: [toA.runId] })).toEqual({
      entered: false,
      cycle: [b.run.runId, toA.runId, a.run.runId, toB.runId, b.run.runId],
    });
    expect(await books.stateOf(b.run.runId)).toBe("running");
    // Another call in the same message waits too, but the slot is freed only once.
    expect(await books.runs.wait(a.held, { for: "approval" })).toEqual({ entered: true });
    await refused("conflict", () => books.runs.end(a.held, { state: "ok" }));
    await books.runs.end(b.held, { state: "ok" });
    books.told();
    expect(await books.runs.resume(a.held)).toBe(true);
    expect(books.told()).toEqual(["run.resumed"]);
    await refused("conflict", () => books.runs.resume(a.held));
  });
});

test("a run whose abort was requested ends instead of sleeping", async () => {
  const { held, run } = await books.running("s");
  const child = await books.running("child");
  await books.runs.abort(run.runId);
  const { runId } = child.run;
  expect(await books.runs.sleep(held, { waitFor: [runId], wakeAt: books.now + 60_000 })).toBe("aborted");
  expect(await books.runs.get(run.runId)).toMatchObject({ state: "aborted", outcome: { code: "aborted" } });
});

describe("ending a run", () => {
  test("messages accepted with the end are accepted atomically, and a second end changes nothing", async () => {
    const child = await books.running("child", { kind: "spawn" });
    const { session } = await books.accept("parent");
    books.told();
    const deliver = [
      {
        session,
        kind: "announce" as const,
        message: { role: "user" as const, content: "done" },
        runId: `announce:${child.run.runId}`,
        root: child.run.root,
        arrivalOf: child.run.runId,
      },
    ];
    const outbox = [
      { session, runId: child.run.runId, target: { channel: "console" }, text: "done", idempotencyKey: "o" },
    ];
    await books.runs.end(child.held, { state: "ok", reply: "done" }, { deliver, outbox });
    await books.runs.end(child.held, { state: "error" }, { deliver, outbox });
    expect(books.told()).toEqual(["run.queued", "outbox.queued", "run.ended"]);
    expect((await books.runs.get(child.run.runId))?.outcome).toEqual({ state: "ok", reply: "done" });
    expect((await books.runs.list({ sessionUid: "parent" })).length).toBe(2);
    expect((await books.runs.outbox.list({})).length).toBe(1);
  });

  test("an impossible end writes nothing", async () => {
    const claim = await books.running("s");
    await books.runs.wait(claim.held, { for: "approval" });
    books.told();
    const deliver = [{ session: claim.run.session, kind: "note" as const, message: claim.run.message }];
    await refused("conflict", () => books.runs.end(claim.held, { state: "ok" }, { deliver }));
    expect((await books.runs.list({})).length).toBe(1);
    expect(books.told()).toEqual([]);
  });

  test("text that a lost owner streamed is kept until the run has ended", async () => {
    const claim = await books.running("s");
    await books.runs.savePartial(claim.held, "half an ans");
    await books.runs.lose(claim.held);
    expect(await books.runs.partial(claim.run.runId)).toBe("half an ans");
    await refused("fenced", () => books.runs.savePartial(claim.held, "more"));
    const again = await books.claim();
    await books.runs.savePartial(again.held, null);
    expect(await books.runs.partial(claim.run.runId)).toBe(null);
  });
});

describe("approvals", () => {
  const request = { toolCallId: "c", toolName: "rm", arguments: { path: "/" }, expiresAt: 1_120_000 };

  test("[LIB13] the first answer counts, the same call is the same request, and a timeout is a no", async () => {
    const claim = await books.running("s");
    books.told();
    const asked = await books.runs.requestApproval(claim.held, request);
    expect(await books.runs.requestApproval(claim.held, request)).toEqual(asked);
    expect(await books.runs.approvals({ open: true }, "ann")).toEqual([asked]);
    expect(await books.runs.approvals({ open: true }, "bob")).toEqual([]);
    expect(await books.runs.resolveApproval(asked.approvalId, "approved", "ann")).toMatchObject({
      answer: "approved",
      by: "ann",
    });
    expect(await books.runs.resolveApproval(asked.approvalId, "denied", "bob")).toMatchObject({
      answer: "approved",
    });
    expect(await books.runs.resolveApproval("nowhere", "denied", null)).toBe(null);
    expect(books.told()).toEqual(["approval.requested", "approval.resolved"]);
    const second = await books.runs.requestApproval(claim.held, { ...request, toolCallId: "d" });
    expect((await books.runs.sweep()).nextAt).toBe(books.now + 30_000);
    books.now = 1_120_000;
    await books.runs.renew("me", [claim.held]);
    await books.runs.sweep();
    expect((await books.runs.approval(second.approvalId))?.answer).toBe("expired");
    const third = await books.runs.requestApproval(claim.held, {
      ...request,
      toolCallId: "e",
      expiresAt: 9e9,
    });
    await books.runs.end(claim.held, { state: "aborted" });
    expect((await books.runs.approvals({ runId: claim.run.runId, open: false })).length).toBe(3);
    expect((await books.runs.approval(third.approvalId))?.answer).toBe("expired");
  });

  test("[LIB13] calls with the same ID but different digests are different requests", async () => {
    const claim = await books.running("s");
    const ask = (callDigest: string) => books.runs.requestApproval(claim.held, { ...request, callDigest });
    const [first, second] = [await ask("d1"), await ask("d2")];
    expect(second.approvalId).not.toBe(first.approvalId);
    await books.runs.resolveApproval(first.approvalId, "approved", "ann");
    expect(await ask("d1")).toMatchObject({ approvalId: first.approvalId, answer: "approved" });
    expect(await ask("d2")).toMatchObject({ approvalId: second.approvalId, answer: null });
  });

  test("[LIB13] only the same call, repeated after its owner was lost, keeps an earlier build's request", async () => {
    const claim = await books.running("s");
    // Earlier builds identified a request by the call ID alone.
    const { approvalId } = await books.runs.requestApproval(claim.held, request);
    const ask = async (more: object) =>
      (await books.runs.requestApproval(claim.held, { ...request, callDigest: "d1", ...more })).approvalId;
    expect(await ask({ isReplay: true })).toBe(approvalId);
    expect(await ask({ isReplay: true, arguments: { path: "/home" } })).not.toBe(approvalId);
    expect(await ask({ isReplay: true, toolName: "mv", callDigest: "d2" })).not.toBe(approvalId);
    expect(await ask({ callDigest: "d3" })).not.toBe(approvalId);
  });
});

const graph = (edges: Record<string, readonly string[]>) => (runId: string) => edges[runId] ?? [];

function cycleOf(from: string, targets: readonly string[], next: (runId: string) => readonly string[]) {
  return runScript(
    findCycle(from, targets, (runId) => valueScript(next(runId))),
    () => undefined,
  );
}

describe("deadlock detection", () => {
  test("[FAM6] finds a wait that leads back to itself, with the path", () => {
    expect(cycleOf("a", ["b"], graph({ b: ["c"], c: ["a"] }))).toEqual(["a", "b", "c", "a"]);
    expect(cycleOf("a", ["a"], graph({}))).toEqual(["a", "a"]);
    expect(cycleOf("a", ["b", "c"], graph({ b: ["d"], c: ["d"], d: [] }))).toBe(null);
    expect(cycleOf("a", ["b"], graph({ b: ["c"], c: ["b"] }))).toBe(null);
  });

  test("[FAM6] finds a cycle exactly if one exists", () => {
    const node = fc.constantFrom("a", "b", "c", "d", "e");
    fc.assert(
      fc.property(fc.array(fc.tuple(node, node), { maxLength: 10 }), fc.array(node), (pairs, targets) => {
        const next = (runId: string) => pairs.filter(([from]) => from === runId).map(([, to]) => to);
        const reached = new Set(targets);
        for (let size = -1; size !== reached.size; ) {
          size = reached.size;
          for (const each of [...reached]) for (const to of next(each)) reached.add(to);
        }
        const cycle = cycleOf("a", targets, next);
        expect(cycle !== null).toBe(reached.has("a"));
        if (cycle === null) return;
        expect(cycle[0]).toBe("a");
        expect(cycle.at(-1)).toBe("a");
        expect(targets).toContain(cycle[1]);
        for (const [at, each] of cycle.entries()) {
          if (at > 1) expect(next(cycle[at - 1] ?? "")).toContain(each);
        }
      }),
    );
  });
});
