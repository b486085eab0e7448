import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { RunBooks, sessionNamed } from "../../../test/support/run-books.ts";
import { refused } from "../../conformance/expect.ts";
import { runIdOf } from "../ledger/run-ledger.ts";
import { migrateRuns, runSteps } from "../ledger/schema.ts";

let books: RunBooks;
beforeEach(() => {
  books = new RunBooks();
});
const folder = mkdtempSync(join(tmpdir(), "skein-runs-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("accepting input", () => {
  test("accepted input waits, with its future entry, until it is written", async () => {
    const run = await books.accept("s", { provenance: { kind: "external_user" }, options: { model: "a/b" } });
    expect(run).toMatchObject({
      state: "queued",
      lane: "main",
      queueMode: "steer",
      fence: 0,
      owner: null,
      startedAt: null,
      deadline: null,
      createdAt: books.now,
      message: { role: "user", content: "hello" },
      options: { model: "a/b" },
      provenance: { kind: "external_user" },
      root: { rootId: run.runId, hops: 0 },
      usage: { totalTokens: 0 },
    });
    expect(await books.runs.pending("s")).toEqual([run]);
    expect(await books.runs.get(run.runId)).toEqual(run);
    expect(books.told()).toEqual(["run.queued"]);
    const claim = await books.claim();
    expect((await books.runs.pending("s")).length).toBe(0);
    await books.runs.markWritten(claim.held);
    await books.runs.release(claim.held);
    expect(await books.runs.pending("s")).toEqual([]);
  });

  test("input for a session that was reset after its lookup is accepted in the session that now has the key", async () => {
    const old = sessionNamed("s");
    const fresh = { ...old, uid: "fresh", sessionId: "fresh" };
    books.sessions.set(fresh.uid, fresh);
    const request = {
      session: old,
      kind: "user",
      message: { role: "user", content: "hello" },
      isDelayed: true,
    } as const;
    const { run } = await books.runs.accept({ ...request, idempotencyKey: "k" });
    expect(run.session).toEqual(fresh);
    expect((await books.claim()).run.session).toEqual(fresh);
    expect(await books.runs.accept({ ...request, idempotencyKey: "k" })).toMatchObject({ isNew: false });
  });

  test("[LIB4] a repeated idempotency key of a user returns the same run, also after a restart", async () => {
    const path = join(folder, "restart.db");
    const first = new RunBooks({}, path);
    const run = await first.accept("ann/s", { idempotencyKey: "k" });
    expect(run.runId).toBe(runIdOf("ann", "k"));
    expect(run.runId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const other = await first.accept("bob/s", { idempotencyKey: "k" });
    expect(other.runId).not.toBe(run.runId);
    first.db.close();
    const second = new RunBooks({}, path);
    const request = { session: sessionNamed("ann/s"), kind: "user", idempotencyKey: "k" } as const;
    const again = await second.runs.accept({ ...request, message: run.message });
    expect(again).toEqual({ run, isNew: false });
    const changed = { ...request, message: { role: "user", content: "other" } } as const;
    await refused("idempotency_conflict", () => second.runs.accept(changed));
    expect(second.told()).toEqual([]);
    expect((await second.runs.list({})).length).toBe(2);
    second.db.close();
  });

  test("[LIB4] a known run ID is that run, and a conflict if it is another user's", async () => {
    const run = await books.accept("ann/s", { runId: "r" });
    expect(await books.accept("ann/s", { runId: "r" })).toEqual(run);
    await refused("conflict", () => books.accept("bob/s", { runId: "r" }));
  });

  test("runs are listed newest first, by state, session and root, and only those of a user", async () => {
    const a = await books.accept("ann/a");
    const b = await books.accept("bob/b", { root: { rootId: a.runId, hops: 1 } });
    const c = await books.accept("ann/c");
    await books.runs.abort(c.runId);
    const ids = async (...args: Parameters<typeof books.runs.list>) =>
      (await books.runs.list(...args)).map(({ runId }) => runId);
    expect(await ids({})).toEqual([c.runId, b.runId, a.runId]);
    expect(await ids({ limit: 1 })).toEqual([c.runId]);
    expect(await ids({ before: c.seq })).toEqual([b.runId, a.runId]);
    expect(await ids({ states: ["queued", "running"] })).toEqual([b.runId, a.runId]);
    expect(await ids({ states: ["aborted"] })).toEqual([c.runId]);
    expect(await ids({ sessionUid: "bob/b" })).toEqual([b.runId]);
    expect(await ids({ rootId: a.runId })).toEqual([b.runId, a.runId]);
    expect(await ids({}, "ann")).toEqual([c.runId, a.runId]);
    expect(await ids({}, null)).toEqual([]);
    expect(await books.runs.get(a.runId, "bob")).toBe(null);
    expect(await books.runs.get("nowhere")).toBe(null);
  });

  test("[LIB10] interrupt asks the running run to end, and is next", async () => {
    const claim = await books.running("s");
    const later = await books.accept("s", { queueMode: "followup" });
    const now = await books.accept("s", { queueMode: "interrupt" });
    expect((await books.runs.get(claim.run.runId))?.abortRequested).toBe(true);
    expect((await books.runs.steerable(claim.held)).length).toBe(0);
    await books.runs.end(claim.held, { state: "aborted" });
    expect((await books.claim()).run.runId).toBe(now.runId);
    expect(await books.stateOf(later.runId)).toBe("queued");
  });

  test("[LIB10] interrupt ends a started turn without an owner, and leaves waiting runs", async () => {
    const claim = await books.running("s");
    await books.runs.markWritten(claim.held);
    const later = await books.accept("s", { queueMode: "followup" });
    await books.runs.lose(claim.held);
    const now = await books.accept("s", { queueMode: "interrupt" });
    expect((await books.runs.get(claim.run.runId))?.outcome).toMatchObject({ state: "aborted" });
    const next = await books.claim();
    expect(next.run.runId).toBe(now.runId);
    expect(await books.stateOf(later.runId)).toBe("queued");
    // The run's input has not been written to the session yet, so the interrupt must not drop it.
    await books.runs.lose(next.held);
    await books.accept("s", { queueMode: "interrupt" });
    expect((await books.claim()).run.runId).toBe(now.runId);
  });

  test("[FAM13] a run is reserved when it is accepted; over the limit nothing is written", async () => {
    const tight = new RunBooks({ limits: { hops: 2, runs: 2, tokens: null, costUsd: null, pingPong: 1 } });
    const first = await tight.accept("a");
    const root = { rootId: first.runId, hops: 2 };
    await refused("budget_exceeded", () => tight.accept("b", { root: { ...root, hops: 3 } }));
    await tight.accept("b", { root, kind: "send", pair: ["a", "b"] });
    expect(await tight.runs.budget(first.runId)).toEqual({
      rootId: first.runId,
      runs: 2,
      tokens: 0,
      costUsd: 0,
      knownCostUsd: 0,
      hops: 2,
    });
    await refused("budget_exceeded", () => tight.accept("c", { root, kind: "spawn" }));
    expect((await tight.runs.list({})).length).toBe(2);
    expect((await tight.runs.budget(first.runId))?.runs).toBe(2);
    expect(await tight.runs.budget("nowhere")).toBe(null);
    await tight.accept("c");
  });

  test("[FAM13] a pair of sessions beyond its limit is refused, in either direction", async () => {
    const tight = new RunBooks({ limits: { hops: 8, runs: 100, tokens: null, costUsd: null, pingPong: 2 } });
    const { runId: rootId } = await tight.accept("a");
    const root = { rootId, hops: 1 };
    await tight.accept("b", { root, kind: "send", pair: ["a", "b"] });
    await tight.accept("a", { root, kind: "ping_pong", pair: ["b", "a"] });
    await refused("budget_exceeded", () => tight.accept("b", { root, kind: "send", pair: ["a", "b"] }));
    await tight.accept("c", { root, kind: "send", pair: ["a", "c"] });
  });

  test("[FAM41] a delivery beyond the budget is written, without a model turn", async () => {
    const tight = new RunBooks({ limits: { hops: 8, runs: 1, tokens: null, costUsd: null, pingPong: 5 } });
    const { runId: rootId } = await tight.accept("a");
    const late = await tight.accept("b", { root: { rootId, hops: 1 }, kind: "announce", isDelivery: true });
    expect(late.isSilent).toBe(true);
    expect((await tight.runs.budget(rootId))?.runs).toBe(1);
  });

  test("[FS18] tables of a newer Skein are refused, and older ones are migrated in one transaction", () => {
    migrateRuns(books.db);
    const known = runSteps.length;
    const broken = [...runSteps, ["CREATE TABLE more (x)", "CREATE TABLE more (x)"]];
    expect(() => migrateRuns(books.db, broken)).toThrow(/already exists/);
    expect(books.db.sql("SELECT value FROM facts WHERE name = 'schema.runs'").get()?.value).toBe(`${known}`);
    migrateRuns(books.db, [...runSteps, ["CREATE TABLE more (x)"]]);
    const newer = `version ${known + 1} of its runs is newer than ${known}`;
    expect(() => migrateRuns(books.db)).toThrow(newer);
  });
});
