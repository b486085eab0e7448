import { beforeEach, describe, expect, test } from "vitest";
import { RunBooks } from "../../../test/support/run-books.ts";
import { Database, inMemory } from "../../store/files/database.ts";
import type { SessionWork } from "../contract.ts";
import { laneByKind } from "../lanes.ts";
import { migrateRuns, runSteps } from "../ledger/schema.ts";

let books: RunBooks;

beforeEach(() => {
  books = new RunBooks();
});

const workIn = async (uid = "s"): Promise<SessionWork | undefined> => (await books.runs.work([uid])).get(uid);

describe("the activity of a session", () => {
  test("goes from none over queued, running and asleep to its end", async () => {
    const began = books.now;
    expect(await workIn()).toEqual({
      status: "idle",
      startedAt: null,
      endedAt: null,
      runId: null,
      queued: 0,
      approvals: 0,
    });
    const run = await books.accept("s");
    expect(await workIn()).toMatchObject({ status: "queued", runId: run.runId, queued: 1, startedAt: null });
    const claim = await books.claim();
    await books.accept("s", { kind: "send" });
    await books.accept("s", { kind: "note" });
    expect(await workIn()).toEqual({
      status: "running",
      startedAt: began,
      endedAt: null,
      runId: run.runId,
      queued: 1,
      approvals: 0,
    });
    await books.runs.wait(claim.held, { for: "approval" });
    expect(await workIn()).toMatchObject({ status: "waiting", runId: run.runId });
    await books.runs.resume(claim.held);
    await books.accept("c", { startedBy: run.runId });
    await books.runs.sleep(claim.held, { wakeAt: books.now + 1000 });
    expect(await workIn()).toMatchObject({ status: "waiting", runId: run.runId, queued: 1 });
    await books.runs.abort(run.runId);
    expect(await workIn()).toMatchObject({ status: "queued", endedAt: null });
  });

  test.each([
    ["ok", "idle"],
    ["error", "error"],
    ["timeout", "timeout"],
    ["aborted", "aborted"],
  ] as const)(
    "of a session whose last run ended as %s is %s, whatever notes came later",
    async (state, status) => {
      const first = await books.running("s");
      const more = await books.accept("s");
      await books.runs.mergeInput(first.held, more.runId);
      books.now += 5;
      await books.runs.end(first.held, { state });
      const endedAt = books.now;
      books.now += 5;
      const note = await books.running("s", { kind: "note" });
      await books.runs.end(note.held, { state: "ok" });
      expect(await workIn()).toEqual({
        status,
        startedAt: endedAt - 5,
        endedAt,
        runId: null,
        queued: 0,
        approvals: 0,
      });
    },
  );

  test("is read for many sessions at once; input kept for a sleeping run does not count", async () => {
    const sleeper = await books.running("s");
    const child = await books.accept("c", { startedBy: sleeper.run.runId });
    const other = await books.accept("d", { startedBy: sleeper.run.runId });
    await books.runs.sleep(sleeper.held, { wakeAt: books.now + 1000 });
    await books.accept("s", { kind: "announce", arrivalOf: child.runId });
    const work = await books.runs.work(["s", "c", "d", "never"]);
    expect([...work.values()].map(({ status, queued }) => [status, queued])).toEqual([
      ["waiting", 0],
      ["queued", 1],
      ["queued", 1],
      ["idle", 0],
    ]);
    expect(other.startedBy).toBe(sleeper.run.runId);
  });
});

describe("other ledger queries", () => {
  test("a budget is checked without reserving anything", async () => {
    const tight = new RunBooks({ limits: { hops: 2, runs: 2, tokens: null, costUsd: null, pingPong: 5 } });
    const { runId: rootId } = await tight.accept("a");
    for (let times = 0; times < 3; times++) await tight.runs.checkBudget({ rootId, hops: 2 });
    await expect(tight.runs.checkBudget({ rootId, hops: 3 })).rejects.toMatchObject({
      code: "budget_exceeded",
    });
    await tight.accept("b", { root: { rootId, hops: 1 } });
    await expect(tight.runs.checkBudget({ rootId, hops: 1 })).rejects.toMatchObject({
      details: { limit: "runs" },
    });
    expect((await tight.runs.budget(rootId))?.runs).toBe(2);
  });

  test("runs are listed by the run that started them", async () => {
    const { run } = await books.running("s");
    const made = [
      await books.accept("a", { startedBy: run.runId }),
      await books.accept("b", { startedBy: run.runId }),
    ];
    await books.accept("c", { startedBy: "another" });
    const found = await books.runs.list({ startedBy: run.runId }, "ann");
    expect(found.map(({ runId }) => runId)).toEqual(made.map(({ runId }) => runId).toReversed());
    expect(await books.runs.list({ startedBy: run.runId }, "bob")).toEqual([]);
  });

  test("a thread belongs to the session it was last bound to, for its user and account", async () => {
    const thread = { channel: "desk", threadId: "42" };
    expect(await books.runs.threadKey("ann", thread)).toBeNull();
    await books.runs.bindThread("ann", thread, "agent:main:main");
    await books.runs.bindThread("ann", thread, "agent:main:session:x");
    await books.runs.bindThread(null, { ...thread, accountId: "two" }, "agent:main:session:y");
    expect(await books.runs.threadKey("ann", thread)).toBe("agent:main:session:x");
    expect(await books.runs.threadKey(null, thread)).toBeNull();
    expect(await books.runs.threadKey(null, { ...thread, accountId: "two" })).toBe("agent:main:session:y");
  });

  test("messages between sessions take a slot of their own lane, and spawns one of another", () => {
    expect((["spawn", "announce", "send", "ping_pong"] as const).map((kind) => laneByKind[kind])).toEqual([
      "subagent",
      "nested",
      "nested",
      "nested",
    ]);
  });

  test("runs of an older Skein survive the migration, without a sequel", async () => {
    const facts = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID";
    const db = new Database(inMemory, "", [facts]);
    migrateRuns(db, runSteps.slice(0, 1));
    db.run(
      `INSERT INTO runs (run_id, user, uid, agent, key, session_id, kind, lane, mode, rank, entry_id, root, hops, state,
         created_at, silent) VALUES ('old', 'ann', 's', 'main', 'k', 's', 'user', 'main', 'steer', 4, 'e', 'old', 0,
         'queued', 1, 0)`,
    );
    db.run(
      `INSERT INTO run_inputs (seq, message, options) VALUES (1, '{"role":"user","content":"hi"}', '{}')`,
    );
    db.run("INSERT INTO ready (uid, slot, user, turn, seq) VALUES ('s', 'main', 'ann', 0, 1)");
    db.run("INSERT INTO ready_users (slot, user, turn, count) VALUES ('main', 'ann', 0, 1)");
    const forward = new RunBooks({ ledger: db });
    expect(db.sql("SELECT value FROM facts WHERE name = 'schema.runs'").get()?.value).toBe(
      String(runSteps.length),
    );
    const claim = await forward.claim();
    expect(claim.run.runId).toBe("old");
    await forward.runs.end(claim.held, { state: "ok" });
    expect(await forward.runs.replyWait("old")).toBeNull();
    expect(await forward.runs.children("ann", "k")).toEqual([]);
  });
});
