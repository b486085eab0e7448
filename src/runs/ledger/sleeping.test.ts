import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { RunBooks } from "../../../test/support/run-books.ts";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import type { Claim, Run } from "../contract.ts";

let books: RunBooks;
beforeEach(() => {
  books = new RunBooks();
});

/** A running parent that has started these children. */
async function parentOf(...children: string[]): Promise<{ parent: Claim; started: Run[] }> {
  const parent = await books.running("parent");
  const started: Run[] = [];
  for (const uid of children)
    started.push(await books.accept(uid, { kind: "spawn", startedBy: parent.run.runId }));
  return { parent, started };
}

/** Ends the child the way its executor does. */
async function finish(child: Run, claimed?: Claim): Promise<void> {
  const claim = claimed ?? (await books.claim());
  expect(claim.run.runId).toBe(child.runId);
  const { session } = (await books.runs.list({ sessionUid: "parent" }))[0] as Run;
  const message = { role: "user" as const, content: `${child.session.uid} is done` };
  const announce = { session, kind: "announce" as const, message, arrivalOf: child.runId, root: child.root };
  await books.runs.end(claim.held, { state: "ok" }, { deliver: [announce] });
}

const hour = 3_600_000;

describe("sleeping", () => {
  test("a sleeping run waits for everything it started; arriving messages are kept for it and start nothing", async () => {
    const { parent, started } = await parentOf("a", "b");
    const [a, b] = started as [Run, Run];
    books.told();
    expect(await books.runs.sleep(parent.held, { wakeAt: books.now + hour })).toBe("sleeping");
    expect(books.events.splice(0)).toMatchObject([{ type: "run.sleeping", waitingFor: [a.runId, b.runId] }]);
    expect(await books.runs.isHeld(parent.held)).toBe(false);
    await finish(a);
    expect(await books.stateOf(parent.run.runId)).toBe("sleeping");
    expect((await books.runs.pending("parent")).map(({ keptFor }) => keptFor)).toEqual([parent.run.runId]);
    books.now += 500_000;
    await finish(b);
    expect(await books.stateOf(parent.run.runId)).toBe("queued");
    const woken = await books.claim();
    expect(woken).toMatchObject({ how: "woken", stillOpen: [], run: { runId: parent.run.runId, fence: 2 } });
    expect(woken.arrivals.map(({ message }) => "content" in message && message.content)).toEqual([
      "a is done",
      "b is done",
    ]);
    // Time spent asleep does not count.
    expect(woken.run.deadline).toBe((parent.run.deadline ?? 0) + 500_000);
    for (const arrival of woken.arrivals) await books.runs.mergeInput(woken.held, arrival.runId);
    await books.runs.end(woken.held, { state: "ok" });
    expect((await books.runs.list({ states: ["merged"] })).length).toBe(2);
    expect(await books.runs.claim("me")).toBe(null);
  });

  test("a sleeping run does not block other input of its session", async () => {
    const { parent } = await parentOf("a");
    await books.runs.sleep(parent.held, { wakeAt: books.now + hour });
    const other = await books.accept("parent");
    const uids = [(await books.claim()).run.runId, (await books.claim()).run.runId];
    expect(uids).toContain(other.runId);
  });

  test("reports that there is nothing to wait for, and the run continues; a message that already arrived wakes it at once", async () => {
    const { parent, started } = await parentOf("a");
    const [a] = started as [Run];
    expect(await books.runs.sleep(parent.held, { waitFor: [], wakeAt: books.now + hour })).toBe(
      "nothing_to_wait_for",
    );
    expect(await books.runs.sleep(parent.held, { waitFor: ["nowhere"], wakeAt: books.now + hour })).toBe(
      "nothing_to_wait_for",
    );
    expect(await books.runs.isHeld(parent.held)).toBe(true);
    await finish(a);
    expect(await books.runs.sleep(parent.held, { wakeAt: books.now + hour })).toBe("queued");
    const woken = await books.claim();
    expect(woken.arrivals.length).toBe(1);
    await books.runs.mergeInput(woken.held, woken.arrivals[0]?.runId ?? "");
    expect(await books.runs.sleep(woken.held, { wakeAt: books.now + hour })).toBe("nothing_to_wait_for");
  });

  test("[FAM24] at the wake time it continues with what has arrived, and is notified of what is still open", async () => {
    const { parent, started } = await parentOf("a", "b");
    const [a, b] = started as [Run, Run];
    await books.runs.sleep(parent.held, { wakeAt: books.now + 1000 });
    await finish(a);
    const running = await books.claim();
    expect((await books.runs.sweep()).nextAt).toBe(books.now + 1000);
    books.now += 1000;
    await books.runs.sweep();
    // Input that arrives before the run continues joins its turn.
    await finish(b, running);
    const woken = await books.claim();
    expect(woken).toMatchObject({ how: "woken", stillOpen: [] });
    expect(woken.arrivals.length).toBe(2);
    // The run is lost before it writes anything, so the next claim is the same.
    await books.runs.lose(woken.held);
    const again = await books.claim();
    expect(again.how).toBe("woken");
    expect(again.arrivals).toEqual(woken.arrivals);
    await books.runs.markWritten(again.held);
    await books.runs.lose(again.held);
    expect((await books.claim()).how).toBe("recovered");
  });

  test("[FAM24] an open run is named, and announces itself later as a separate run", async () => {
    const { parent, started } = await parentOf("a");
    const [a] = started as [Run];
    await books.runs.sleep(parent.held, { wakeAt: books.now + 1000 });
    books.now += 1000;
    await books.runs.sweep();
    // The child has waited longer and is in a different lane, so either run can be claimed first.
    const claims = [await books.claim(), await books.claim()];
    const woken = claims.find(({ how }) => how === "woken") as Claim;
    expect(woken).toMatchObject({ stillOpen: [a.runId], endedSilent: [] });
    await books.runs.markWritten(woken.held);
    const late = await books.accept("parent", { kind: "announce", arrivalOf: a.runId });
    expect(late.keptFor).toBe(null);
  });

  test("a child that ends without a reply also wakes the run, and is named", async () => {
    const { parent, started } = await parentOf("a");
    const [a] = started as [Run];
    await books.runs.sleep(parent.held, { wakeAt: books.now + hour });
    await books.runs.abort(a.runId);
    const woken = await books.claim();
    expect(woken).toMatchObject({ how: "woken", arrivals: [], stillOpen: [], endedSilent: [a.runId] });
  });

  test("messages kept for a run that ends asleep become separate runs", async () => {
    const { parent, started } = await parentOf("a", "b");
    const [a] = started as [Run];
    await books.runs.sleep(parent.held, { wakeAt: books.now + hour });
    await finish(a);
    const [kept] = await books.runs.pending("parent");
    expect(await books.runs.abort(parent.run.runId)).toBe("aborted");
    expect((await books.runs.get(kept?.runId ?? ""))?.keptFor).toBe(null);
    const claims = [await books.claim(), await books.claim()];
    expect(claims.map(({ run }) => run.runId)).toContain(kept?.runId);
  });

  test("a sleeping run whose request exceeds its budget ends, and kept messages are written", async () => {
    books = new RunBooks({ limits: { hops: 8, runs: 100, tokens: 10, costUsd: null, pingPong: 5 } });
    const parent = await books.running("parent");
    const child = await books.running("a", {
      startedBy: parent.run.runId,
      root: parent.run.root,
      kind: "spawn",
    });
    await books.runs.sleep(parent.held, { wakeAt: books.now + hour });
    const spent = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 11 };
    await expect(books.runs.charge(child.held, spent)).rejects.toThrow(
      /the limit for tokens: 11 \(maximum: 10\)/,
    );
    const announce = {
      session: parent.run.session,
      kind: "announce" as const,
      message: { role: "user" as const, content: "done" },
      arrivalOf: child.run.runId,
      root: parent.run.root,
    };
    await books.runs.end(child.held, { state: "error" }, { deliver: [announce] });
    expect(await books.runs.get(parent.run.runId)).toMatchObject({
      state: "error",
      outcome: { code: "budget_exceeded" },
    });
    const silent = await books.claim();
    expect(silent.run).toMatchObject({ isSilent: true, keptFor: null, kind: "announce" });
  });
});

describe("sweeping", () => {
  test("ended runs and outbox rows are kept for 30 days", async () => {
    const claim = await books.running("s", { idempotencyKey: "k" });
    const { session } = claim.run;
    const outbox = [{ session, runId: null, target: { channel: "c" }, text: "t", idempotencyKey: "o" }];
    await books.runs.end(claim.held, { state: "ok" }, { outbox });
    const [row] = await books.runs.outbox.due("me", 10, 1000);
    await books.runs.outbox.delivered(row?.outboxId ?? "", "me", null);
    const open = await books.accept("t");
    books.now += 30 * 24 * hour;
    await books.runs.sweep();
    expect(await books.stateOf(claim.run.runId)).toBe("ok");
    books.now += 1;
    await books.runs.sweep();
    expect(await books.stateOf(claim.run.runId)).toBe("unknown");
    expect(await books.stateOf(open.runId)).toBe("queued");
    expect(await books.runs.outbox.list({})).toEqual([]);
    expect(await books.runs.budget(claim.run.runId)).toBe(null);
    expect((await books.runs.budget(open.runId))?.runs).toBe(1);
    expect((await books.accept("s", { idempotencyKey: "k" })).state).toBe("queued");
  });

  test("processes that sweep at the same time wake a run, recover one and expire an approval once", async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, "work.db");
    const all = ["a", "b", "c"].map((name) => new RunBooks({}, path, name));
    const [first] = all as [RunBooks];
    const held = await first.running("held");
    const sleepers: string[] = [];
    for (const uid of ["s1", "s2", "s3", "s4"]) {
      const { run, held: own } = await first.running(uid);
      await first.runs.sleep(own, { waitFor: [held.run.runId], wakeAt: first.now + 1000 });
      sleepers.push(run.runId);
    }
    const question = { toolCallId: "c", toolName: "pay", arguments: {}, expiresAt: first.now + 1000 };
    const { approvalId } = await first.runs.requestApproval(held.held, question);
    for (const each of all) each.told();
    for (const each of all) each.now += 30_000;
    await Promise.all(all.flatMap(({ runs }) => [runs.sweep(), runs.sweep()]));
    const told = all.flatMap(({ events }) => events);
    const queued = told.flatMap(({ type, runId }) => (type === "run.queued" ? [runId] : []));
    expect(queued.toSorted()).toEqual([...sleepers, held.run.runId].toSorted());
    expect(told.filter(({ type }) => type === "approval.resolved")).toMatchObject([{ approvalId }]);
    expect(await first.runs.get(held.run.runId)).toMatchObject({ state: "queued", fence: 2 });
    for (const { db } of all) db.close();
  });

  test("[KIL2] a sweep recovers lost runs, and returns when to check again", async () => {
    const claim = await books.running("s");
    expect(await books.runs.sweep()).toEqual({ nextAt: books.now + 30_000 });
    books.now += 30_000;
    books.locked.add("s");
    await books.runs.sweep();
    expect(await books.runs.isHeld(claim.held)).toBe(true);
    books.locked.clear();
    expect(await books.runs.sweep()).toEqual({ nextAt: claim.run.deadline });
    expect(await books.stateOf(claim.run.runId)).toBe("queued");
    books.now += hour;
    expect(await books.runs.sweep()).toEqual({ nextAt: null });
    expect(await books.stateOf(claim.run.runId)).toBe("timeout");
  });
});
