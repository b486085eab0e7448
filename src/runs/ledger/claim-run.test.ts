import { beforeEach, describe, expect, test } from "vitest";
import { RunBooks, spawnedBy } from "../../../test/support/run-books.ts";
import { refused } from "../../conformance/expect.ts";
import type { Claim } from "../contract.ts";

let books: RunBooks;
beforeEach(() => {
  books = new RunBooks();
});

const claimAll = async (from: RunBooks = books): Promise<string[]> => {
  const uids: string[] = [];
  for (let claim = await from.runs.claim("me"); claim !== null; claim = await from.runs.claim("me")) {
    uids.push(claim.run.session.uid);
  }
  return uids;
};

describe("claiming", () => {
  test("a claim raises the fence under the session's lock, and is announced once", async () => {
    const run = await books.accept("s", { options: { model: "a/b" } });
    books.told();
    const claim = await books.claim();
    expect(claim).toMatchObject({ how: "new", leafId: "leaf of s", arrivals: [], stillOpen: [] });
    expect(claim.run).toMatchObject({
      runId: run.runId,
      state: "running",
      fence: 1,
      owner: "me",
      startedAt: books.now,
      leaseUntil: books.now + 30_000,
      deadline: books.now + 3_600_000,
    });
    expect(books.told()).toEqual(["run.started"]);
    expect(await books.runs.isHeld({ runId: run.runId, fence: 1 })).toBe(true);
    expect(await books.runs.isHeld({ runId: run.runId, fence: 0 })).toBe(false);
  });

  test("a session has at most one run that is running or waiting", async () => {
    const first = await books.running("s");
    await books.accept("s");
    expect(await books.runs.claim("me")).toBe(null);
    await books.runs.wait(first.held, { for: "approval" });
    expect(await books.runs.claim("me")).toBe(null);
    expect(await books.runs.resume(first.held)).toBe(true);
    await books.runs.end(first.held, { state: "ok" });
    expect((await books.claim()).run.fence).toBe(1);
  });

  test("the deadline counts from the first claim, and 0 means no deadline", async () => {
    const claim = await books.running("s", { options: { runTimeoutSeconds: 60 } });
    expect(claim.run.deadline).toBe(books.now + 60_000);
    books.now += 1000;
    await books.runs.release(claim.held);
    expect((await books.claim()).run.deadline).toBe(books.now + 59_000);
    expect((await books.running("t", { options: { runTimeoutSeconds: 0 } })).run.deadline).toBe(null);
  });

  test("a claimed run whose time limit passes while it is queued times out; one never claimed does not", async () => {
    const claim = await books.running("s");
    await books.runs.release(claim.held);
    const waiting = await books.accept("t");
    books.now += 4_000_000;
    expect((await books.claim()).run.runId).toBe(waiting.runId);
    expect(await books.runs.claim("me")).toBe(null);
    expect(await books.runs.get(claim.run.runId)).toMatchObject({
      state: "timeout",
      outcome: { code: "timeout" },
    });
  });

  test("a missing session ends its run, and a locked one is skipped", async () => {
    const gone = await books.accept("gone");
    await books.accept("locked");
    const open = await books.accept("open");
    books.removed.add("gone");
    books.locked.add("locked");
    expect((await books.claim()).run.runId).toBe(open.runId);
    expect(await books.runs.claim("me")).toBe(null);
    expect(await books.runs.get(gone.runId)).toMatchObject({
      state: "error",
      outcome: { code: "not_found" },
    });
    books.locked.clear();
    expect((await books.claim()).run.session.uid).toBe("locked");
    expect(await books.runs.outbox.list({})).toEqual([]);
    await books.accept("gone", { kind: "announce" });
    expect(await books.runs.claim("me")).toBe(null);
    expect(await books.runs.outbox.list({})).toMatchObject([
      { state: "dead", target: { channel: "session" } },
    ]);
  });

  test("[KIL12] each lane has its cap, and a full one does not block another", async () => {
    for (let at = 0; at < 6; at++) {
      await books.accept(`main-${at}`);
      await books.accept(`cron-${at}`, { kind: "cron" });
    }
    const uids = await claimAll();
    expect(uids.filter((uid) => uid.startsWith("main")).length).toBe(4);
    expect(uids.filter((uid) => uid.startsWith("cron")).length).toBe(1);
  });

  test("[KIL12] a claim that loses the last slot to a resumed run leaves its run queued", async () => {
    const one = new RunBooks({ lanes: { main: 1, subagent: 1, cron: 1, nested: 1 } });
    const waiter = await one.running("a");
    await one.runs.wait(waiter.held, { for: "approval" });
    const { runId } = await one.accept("b");
    const [claim, hasResumed] = await Promise.all([one.runs.claim("other"), one.runs.resume(waiter.held)]);
    expect({ claim, hasResumed }).toEqual({ claim: null, hasResumed: true });
    expect(await one.runs.get(runId)).toMatchObject({ state: "queued", owner: null, fence: 0 });
  });

  test("a run that another process has executed and lost since it was chosen is claimed for recovery", async () => {
    await books.accept("s");
    books.beforeLock = async () => {
      const { held } = await books.claim("other");
      await books.runs.lose(held);
    };
    expect((await books.claim()).how).toBe("recovered");
  });

  test("users take turns, then their sessions", async () => {
    const one = new RunBooks({ lanes: { main: 1, subagent: 1, cron: 1, nested: 1 } });
    for (let at = 0; at < 3; at++) for (const uid of ["ann/a", "ann/b"]) await one.accept(uid);
    await one.accept("bob/c");
    const uids: string[] = [];
    for (let claim = await one.runs.claim("me"); claim !== null; claim = await one.runs.claim("me")) {
      uids.push(claim.run.session.uid);
      await one.runs.end(claim.held, { state: "ok" });
    }
    expect(uids).toEqual(["ann/a", "bob/c", "ann/b", "ann/a", "ann/b", "ann/a", "ann/b"]);
  });

  test("a free slot goes to a run that has finished waiting before any new claim", async () => {
    const one = new RunBooks({ lanes: { main: 1, subagent: 1, cron: 1, nested: 1 } });
    const waiter = await one.running("a");
    await one.runs.wait(waiter.held, { for: "approval" });
    const other = await one.running("b");
    await one.accept("c");
    expect(await one.runs.resume(waiter.held)).toBe(false);
    await one.runs.end(other.held, { state: "ok" });
    expect(await one.runs.claim("me")).toBe(null);
    expect(await one.runs.resume(waiter.held)).toBe(true);
    await one.runs.end(waiter.held, { state: "ok" });
    expect((await one.claim()).run.session.uid).toBe("c");
  });

  test("silent runs take no slot and go before the other input of their session", async () => {
    const one = new RunBooks({ lanes: { main: 0, subagent: 0, cron: 0, nested: 0 } });
    await one.accept("s");
    const note = await one.accept("s", { kind: "note" });
    const claim = await one.claim();
    expect(claim.run).toMatchObject({ runId: note.runId, isSilent: true });
    await one.runs.end(claim.held, { state: "ok" });
    expect(await one.runs.claim("me")).toBe(null);
    expect((await one.runs.budget(note.runId))?.runs).toBe(undefined);
  });

  test("a run that lost its owner comes before all other input of its session", async () => {
    const claim = await books.running("s", {}, "other");
    await books.accept("s", { kind: "note" });
    await books.accept("s", { queueMode: "interrupt" });
    await books.accept("s");
    await refused("fenced", () => books.runs.release({ ...claim.held, fence: 9 }));
    const again = new RunBooks();
    const lost = await again.running("s", {}, "other");
    await again.accept("s", { kind: "note" });
    again.told();
    again.gone.add("other");
    const recovered = await again.claim("me");
    expect(recovered).toMatchObject({ how: "recovered", run: { runId: lost.run.runId, lost: 1, fence: 3 } });
    expect(again.told()).toEqual(["run.queued", "run.started"]);
    expect(await again.runs.isHeld(lost.held)).toBe(false);
  });

  test("[KIL2] a silent owner is lost when its lease has expired, and not before", async () => {
    const claim = await books.running("s", {}, "other");
    books.now += 29_999;
    expect(await books.runs.claim("me")).toBe(null);
    expect(await books.runs.renew("other", [claim.held, { runId: "x", fence: 1 }])).toEqual(["x"]);
    books.now += 29_999;
    expect(await books.runs.claim("me")).toBe(null);
    books.now += 1;
    expect((await books.claim("me")).how).toBe("recovered");
    expect(await books.runs.renew("other", [claim.held])).toEqual([claim.run.runId]);
    await refused("fenced", () => books.runs.end(claim.held, { state: "ok" }));
    await refused("fenced", () => books.runs.markWritten(claim.held));
  });

  test("[ANS4] the fourth loss ends a run with the reason; releasing it does not count as a loss", async () => {
    let claim = await books.running("s");
    for (let at = 0; at < 3; at++) {
      await books.runs.release(claim.held);
      claim = await books.claim();
      await books.runs.lose(claim.held);
      claim = await books.claim();
    }
    expect(claim.run.lost).toBe(3);
    await books.runs.lose(claim.held);
    const ended = await books.runs.get(claim.run.runId);
    expect(ended).toMatchObject({ state: "error", outcome: { code: "lost_too_often" } });
    expect(ended?.outcome?.error).toContain("lost its process 4 times");
  });

  /** Makes a claimed run lose its owner repeatedly until the run ends. */
  const loseUntilEnded = async (claim: Claim): Promise<void> => {
    for (let held = claim; ; held = await books.claim()) {
      await books.runs.lose(held.held);
      if ((await books.stateOf(held.run.runId)) === "error") return;
    }
  };

  test("[ANS4] lost input is listed until it is retried, and not forgotten before", async () => {
    const claim = await books.running("s");
    await loseUntilEnded(claim);
    const { runId } = claim.run;
    books.now += 90 * 24 * 60 * 60 * 1000;
    await books.runs.sweep();
    expect((await books.runs.list({ lost: true })).map((run) => run.runId)).toEqual([runId]);
    expect(await books.runs.get(runId)).toMatchObject({
      lost: 4,
      retriedAs: null,
      message: claim.run.message,
    });
    const retry = await books.runs.retry(runId);
    expect(await books.runs.list({ lost: true })).toEqual([]);
    await books.runs.sweep();
    expect(await books.runs.get(runId)).toBe(null);
    expect(await books.stateOf(retry?.run.runId ?? "")).toBe("queued");
  });

  test("[ANS5] a retry continues the lost turn with a fresh count, and repeating it returns the same retry", async () => {
    const options = { deliverTo: { channel: "desk", to: "ann" } };
    const claim = await books.running("s", { options });
    await books.runs.markWritten(claim.held);
    const begunAt = books.now;
    const more = await books.accept("s");
    await books.runs.mergeInput(claim.held, more.runId);
    await loseUntilEnded(claim);
    books.now += 5;
    const { runId, entryId, message, root } = claim.run;
    const retry = await books.runs.retry(runId);
    expect(retry).toMatchObject({
      isNew: true,
      run: { state: "queued", lost: 0, retryOf: runId, entryId, message, options, root },
    });
    const again = { isNew: false, run: { runId: retry?.run.runId } };
    expect(await books.runs.retry(runId)).toMatchObject(again);
    expect(await books.runs.retry(more.runId)).toMatchObject(again);
    expect(await books.runs.pending("s")).toEqual([]);
    const first = await books.claim();
    expect(first).toMatchObject({
      how: "recovered",
      begunAt,
      isOvertaken: false,
      run: { startedAt: books.now },
    });
    await loseUntilEnded(first);
    const second = await books.runs.retry(first.run.runId);
    expect(second?.run).toMatchObject({ retryOf: first.run.runId, entryId });
    expect(await books.claim()).toMatchObject({ how: "recovered", begunAt });
  });

  test("[ANS5] a retry after other runs of the session is a separate turn", async () => {
    const claim = await books.running("s");
    await books.runs.markWritten(claim.held);
    await loseUntilEnded(claim);
    await books.runs.end((await books.running("s")).held, { state: "ok" });
    await books.runs.retry(claim.run.runId);
    const retry = await books.claim();
    expect(retry).toMatchObject({ how: "new", isOvertaken: true });
    await books.runs.lose(retry.held);
    expect(await books.claim()).toMatchObject({
      how: "recovered",
      begunAt: retry.begunAt,
      isOvertaken: true,
    });
  });

  test("[ANS5] only lost input can be retried, and only if its session exists", async () => {
    const claim = await books.running("s");
    await refused("conflict", () => books.runs.retry(claim.run.runId));
    expect(await books.runs.retry("nowhere")).toBe(null);
    await loseUntilEnded(claim);
    books.removed.add("s");
    await refused("not_found", () => books.runs.retry(claim.run.runId));
  });

  test("the events of a queued and a started run name the run that started it", async () => {
    const claim = await books.running("s", { startedBy: "parent" });
    const told = books.events.filter(({ runId }) => runId === claim.run.runId);
    expect(told).toMatchObject([
      { type: "run.queued", startedBy: "parent" },
      { type: "run.started", startedBy: "parent" },
    ]);
  });

  test("a session that cannot be written delays no other, and the problem is reported", async () => {
    books.broken.add("bad");
    await books.accept("bad");
    await books.accept("good");
    expect((await books.claim()).run.session.uid).toBe("good");
    await expect(books.runs.claim("me")).rejects.toThrow("EIO: bad");
    books.broken.clear();
    expect((await books.claim()).run.session.uid).toBe("bad");
  });

  test("a lost run whose session cannot be written does not delay others", async () => {
    await books.running("bad", {}, "dead");
    books.gone.add("dead");
    books.broken.add("bad");
    const { runId } = await books.accept("good");
    expect((await books.claim()).run.runId).toBe(runId);
    await expect(books.runs.claim("me")).rejects.toThrow("EIO: bad");
    await expect(books.runs.sweep()).rejects.toThrow("EIO: bad");
    books.broken.clear();
    expect((await books.claim()).run.session.uid).toBe("bad");
  });

  test.each([
    ["files", true, ["lost", "new"]],
    ["rows of a database", false, []],
  ])("a claim that finds sessions locked, with locks that are %s", async (_, hasLockFiles, reported) => {
    books = new RunBooks({ hasLockFiles });
    await books.running("lost", {}, "dead");
    books.gone.add("dead");
    await books.accept("new");
    for (const uid of ["lost", "new"]) books.locked.add(uid);
    const { runId } = await books.accept("good");
    const locked: string[] = [];
    const claim = (except: readonly string[]) =>
      books.runs.claim("me", new Set(except), (uid) => void locked.push(uid));
    expect((await claim([]))?.run.runId).toBe(runId);
    expect(locked).toEqual(reported);
    books.beforeLock = async () => expect.unreachable("the sessions that are left out were locked again");
    expect(await claim(["lost", "new"])).toBe(null);
  });

  test("[LIB11] an aborted run does not continue when its owner is lost", async () => {
    const claim = await books.running("s");
    expect(await books.runs.abort(claim.run.runId, "enough")).toBe("running");
    expect(await books.runs.isHeld(claim.held)).toBe(true);
    await books.runs.lose(claim.held);
    const ended = await books.runs.get(claim.run.runId);
    expect(ended).toMatchObject({ state: "aborted", outcome: { state: "aborted", error: "enough" } });
    expect(await books.runs.claim("me")).toBe(null);
  });

  test("[LIB11] abort ends a run without an owner at once, and reports an unknown run", async () => {
    const run = await books.accept("s");
    books.told();
    expect(await books.runs.abort(run.runId)).toBe("aborted");
    expect(await books.runs.abort(run.runId)).toBe("aborted");
    expect(await books.runs.abort("nowhere")).toBe(null);
    expect(books.told()).toEqual(["run.ended"]);
    expect(await books.runs.claim("me")).toBe(null);
  });

  test("[LIB11] aborting input that joined another turn ends that turn", async () => {
    const claim = await books.running("s");
    const more = await books.accept("s");
    await books.runs.mergeInput(claim.held, more.runId);
    expect(await books.runs.abort(more.runId, "enough")).toBe("merged");
    expect(await books.runs.stopRequests("me", [claim.held])).toEqual({
      lost: [],
      aborted: [claim.run.runId],
    });
    await books.runs.lose(claim.held);
    for (const { runId } of [claim.run, more])
      expect((await books.runs.get(runId))?.outcome).toMatchObject({ state: "aborted", error: "enough" });
    // The abort changes neither ended runs nor the run that continued after them.
    const next = await books.running("s");
    expect(await books.runs.abort(more.runId)).toBe("merged");
    expect((await books.runs.get(next.run.runId))?.abortRequested).toBe(false);
  });

  test("whatever waits or has ended, no step in a run's life scans a whole table", async () => {
    const seen = new Set<string>();
    const db = books.db;
    const watched = new RunBooks({
      ledger: {
        sql: (text) => {
          seen.add(text);
          return db.sql(text);
        },
        run: (text, ...values) => {
          seen.add(text);
          return db.run(text, ...values);
        },
        exclusively: (act) => db.exclusively(act),
        unsynced: (act) => db.unsynced(act),
        changeMark: () => db.changeMark(),
      },
    });
    const first = await watched.running("s");
    const child = await watched.accept("c", { startedBy: first.run.runId, idempotencyKey: "k" });
    await watched.accept("s", { queueMode: "interrupt" });
    await watched.runs.steerable(first.held);
    await watched.runs.sleep(first.held, { wakeAt: watched.now + 1000 });
    const second = await watched.claim();
    await watched.accept("s", { kind: "announce", arrivalOf: child.runId });
    await watched.runs.wait(second.held, { for: "run", runIds: ["elsewhere"] });
    await watched.runs.resume(second.held);
    await watched.runs.renew("me", [second.held]);
    await watched.runs.charge(second.held, { ...first.run.usage });
    await watched.runs.end(second.held, { state: "ok" });
    await watched.runs.list({ states: ["queued"] });
    await watched.runs.list({ sessionUid: "s" });
    await watched.runs.pending("s");
    const awaitedBy = { by: { runId: child.runId }, until: watched.now };
    const spawned = await watched.accept("d", { ...spawnedBy(first.run, { cleanup: "delete" }), awaitedBy });
    await watched.runs.end((await watched.claim()).held, { state: "ok" });
    await watched.runs.stopAwaiting(spawned.runId);
    await watched.runs.children("ann", first.run.session.key, { endedSince: watched.now, open: true });
    await watched.runs.childrenToTidy();
    await watched.runs.markTidied(spawned.runId);
    await watched.runs.work(["s", "d"]);
    await watched.runs.list({ startedBy: first.run.runId });
    await watched.runs.threadKey("ann", { channel: "desk", threadId: "1" });
    watched.now += 2000;
    await watched.runs.changedByOthers();
    await watched.runs.sweep();
    const scans = [...seen]
      .filter((text) => !/^(PRAGMA|CREATE)|FROM facts|INTO facts/.test(text))
      .flatMap((text) => {
        const nulls = [...text.matchAll(/\?/g)].map(() => null);
        return db
          .sql(`EXPLAIN QUERY PLAN ${text}`)
          .all(...nulls)
          .map(({ detail }) => `${detail} | ${text}`);
      })
      // A value list in the query itself is not a table.
      .filter(
        (step) => step.startsWith("SCAN") && !/^SCAN (CONSTANT ROW|json_each|page VIRTUAL TABLE)/.test(step),
      )
      .filter(
        (step) =>
          !/^SCAN (runs|approvals|outbox|budgets|children) USING (COVERING )?INDEX (runs_active|runs_wake|runs_deadline|approvals_open|runs_ended|runs_held_back|children_untidied)\b/.test(
            step,
          ),
      );
    expect(scans).toEqual([]);
    expect(seen.size).toBeGreaterThan(60);
  });
});
