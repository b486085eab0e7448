import pg from "pg";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { isDatabaseFault, isSharedFault } from "../../src/core/errors.ts";
import { createIdSource } from "../../src/core/ids.ts";
import type { Script, SqlRow } from "../../src/core/script.ts";
import { changeRows, queryRow, queryRows, valueScript } from "../../src/core/script.ts";
import type { Scope } from "../../src/entry-store.ts";
import type { EntryDraft } from "../../src/index.ts";
import { SkeinError } from "../../src/index.ts";
import { ChangeFeed } from "../../src/store/change-feed.ts";
import type { Sql } from "../../src/store/postgres/database.ts";
import { PostgresDatabase } from "../../src/store/postgres/database.ts";
import { driveScript } from "../../src/store/postgres/drive-script.ts";
import { userKey } from "../../src/store/postgres/lookup-text.ts";
import { userTables } from "../../src/store/postgres/schema-tables.ts";
import type { SessionParts } from "../../src/store/postgres/session-access.ts";
import { SessionAccess } from "../../src/store/postgres/session-access.ts";
import { SessionAppender } from "../../src/store/postgres/session-appender.ts";
import type { WorkingStore } from "../../src/store/work.ts";
import { Attendance } from "../../src/store/work.ts";
import type { TestDatabase, TestServer } from "../support/postgres.ts";
import { openPostgresStore, postgresFor } from "../support/postgres.ts";
import type { PostgresProxy } from "../support/postgres-proxy.ts";
import { startPostgresProxy } from "../support/postgres-proxy.ts";
import { soon } from "../support/soon.ts";
import { allEntries, append, create, ids, refused, said } from "../support/store-calls.ts";

let server: TestServer;
let database: TestDatabase | null = null;
let proxy: PostgresProxy;
/** Two stores on one database, as in two processes. */
let one: WorkingStore;
let other: WorkingStore;
let users = 0;
let scope: Scope;

beforeEach(async (context) => {
  server = await postgresFor(context);
  scope = { userId: `user${users++}`, agentId: "main" };
  if (database !== null) return;
  database = await server.createDatabase();
  proxy = await startPostgresProxy(database.url());
  one = await openPostgresStore({ url: proxy.url });
  other = await openPostgresStore({ url: database.url() });
});
afterAll(async () => {
  await one?.close();
  await other?.close();
  await proxy?.close();
  await database?.drop();
});

function partsWith(direct: PostgresDatabase): SessionParts {
  return {
    ...{ database: direct, feed: new ChangeFeed(), attendance: new Attendance() },
    ...{ clock: systemClock, newId: createIdSource() },
  };
}

describe("two processes on one database", () => {
  test("concurrent appends form one chain and lose nothing", async () => {
    await create(one, scope, "s");
    const names = Array.from({ length: 60 }, (_, index) => `e${index}`);
    await Promise.all(names.map((name, index) => append(index % 2 === 0 ? one : other, scope, "s", name)));
    const entries = await allEntries(one, scope, "s");
    expect(entries.map(({ id }) => id).toSorted()).toEqual(names.toSorted());
    for (const [index, entry] of entries.entries())
      expect(entry.parentId).toBe(entries[index - 1]?.id ?? null);
    expect(await other.sessions.get(scope, "s")).toEqual(await one.sessions.get(scope, "s"));
  });

  test("a process notices that the other one has appended, branched, patched or redacted", async () => {
    await create(one, scope, "s");
    await append(one, scope, "s", "a", "b");
    await append(other, scope, "s", "c");
    const item = [{ draft: said("d"), id: "d" }];
    await refused("conflict", () => one.sessions.append(scope, "s", item, { expectedLeafId: "b" }));
    await one.sessions.append(scope, "s", item, { expectedLeafId: "c" });
    await other.sessions.branch(scope, "s", "a");
    await append(one, scope, "s", "e");
    expect((await other.sessions.context(scope, "s"))?.entryIds).toEqual(["a", "e"]);
    await other.sessions.patch(scope, "s", { model: "x/y" });
    await append(one, scope, "s", "f");
    expect((await one.sessions.get(scope, "s"))?.meta).toEqual({ model: "x/y" });
    await other.sessions.redact(scope, "s", ["e"]);
    await append(one, scope, "s", "g");
    expect((await one.search.search(scope, { text: "e" })).hits).toEqual([]);
    expect((await other.sessions.context(scope, "s"))?.entryIds).toEqual(["a", "e", "f", "g"]);
  });

  test("a process does not append to a session that the other one removed, purged or replaced", async () => {
    await create(one, scope, "s");
    await append(one, scope, "s", "a");
    await other.sessions.remove(scope, "s");
    await refused("not_found", () => append(one, scope, "s", "b"));
    await other.sessions.purge(scope, "s");
    await refused("not_found", () => append(one, scope, "s", "b"));
    await create(other, scope, "s");
    await append(one, scope, "s", "c");
    expect(await ids(other, scope, "s")).toEqual(["c"]);
  });

  test("only one of them creates a key, an ID or a label", async () => {
    const outcomes = await Promise.allSettled(
      [one, other, one, other].map((store) => create(store, scope, "s", { label: "l" })),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "conflict" });
  });

  test("a state value is set once per version", async () => {
    await create(one, scope, "s");
    const setting = [one, other, one, other].map((store, index) =>
      store.state.set(scope, "s", "k", index, { ifVersion: null }),
    );
    const outcomes = await Promise.allSettled(setting);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    await Promise.all([one, other, one].map((store) => store.state.set(scope, "s", "k", 0)));
    expect((await one.state.get(scope, "s", "k"))?.version).toBe(4);
  });

  test("nothing of a purged user is left, even if sessions are created at the same time", async () => {
    for (const name of ["a", "b", "c"]) await create(one, scope, name);
    const busy = ["d", "e", "f", "g"].map(async (name) => {
      await create(other, scope, name).catch(() => null);
      await append(other, scope, name, "x").catch(() => null);
    });
    await one.purgeUser(String(scope.userId));
    await Promise.all(busy);
    await one.purgeUser(String(scope.userId));
    const counts = userTables.map((table) => `SELECT FROM skein.${table} WHERE user_id = '${scope.userId}'`);
    const found = await server.administer(String(database?.name), ...counts);
    expect(found.map(({ rowCount }) => rowCount)).toEqual(userTables.map(() => 0));
  });

  test("no session is created while all of the user's data is being deleted", async () => {
    await create(one, scope, "a");
    const direct = await PostgresDatabase.create({ url: String(database?.url()) });
    const order: string[] = [];
    const waits = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    let creating: Promise<unknown> = Promise.resolve();
    await direct.transact(scope.userId ?? null, async (sql) => {
      await sql("SELECT skein.purge_user($1)", [String(scope.userId)]);
      creating = create(other, scope, "b").then(() => order.push("created"));
      await soon(async () => order.length > 0 || (await sql(waits)).length > 0).toBe(true);
      order.push("purged");
    });
    await creating;
    expect(order).toEqual(["purged", "created"]);
    expect(await one.sessions.count(scope, {})).toBe(1);
    await direct.close();
  });
});

describe("a write that waits for a longer change", () => {
  test("fails with `locked`, and succeeds after the change", async () => {
    await create(one, scope, "s");
    const url = String(database?.url());
    const changing = await PostgresDatabase.create({ url });
    const waiting = await PostgresDatabase.create({ url, lockTimeoutMs: 50 });
    const access = new SessionAccess(partsWith(waiting));
    const appender = new SessionAppender(access);
    const write = (id: string) => appender.append(scope, "s", [{ draft: said(id), id }], {});
    const change = () =>
      waiting.transact(scope.userId ?? null, async (sql) => sql("SELECT"), { locks: "runs" });
    await write("a");
    const script = async (sql: Sql) => {
      await sql("SELECT FROM skein.sessions WHERE user_id = $1 FOR UPDATE", [userKey(scope.userId)]);
      for (const act of [() => write("b"), change]) {
        const error: unknown = await act().catch((thrown: unknown) => thrown);
        const message = expect.stringContaining("for example for a redaction or a purge");
        expect(error).toMatchObject({ code: "locked", message });
        expect(isDatabaseFault(error)).toBe(true);
        expect(isSharedFault(error)).toBe(false);
      }
    };
    await changing.transact(scope.userId ?? null, script, { locks: "runs", isLong: true });
    await change();
    await write("c");
    expect(await ids(one, scope, "s")).toEqual(["a", "c"]);
    for (const each of [changing, waiting]) await each.close();
  });
});

describe("a process that stops in the middle of a change", () => {
  test("does not keep the session locked, and its change is repeated", async () => {
    await create(one, scope, "s");
    const retryDelaysMs = Array.from({ length: 100 }, () => 1);
    const options = { url: String(database?.url()), idleTransactionMs: 500, retryDelaysMs };
    const paused = await PostgresDatabase.create(options);
    const access = new SessionAccess(partsWith(paused));
    let attempts = 0;
    const entry = await paused.transact(scope.userId ?? null, async (sql) => {
      attempts += 1;
      await access.require(sql, scope, "s", "write");
      // Waits for the lock that this transaction holds, until the server ends this transaction.
      if (attempts === 1) await append(other, scope, "s", "a");
      return sql<{ entry_id: string }>("SELECT entry_id FROM skein.entries WHERE user_id = $1", [
        String(scope.userId),
      ]);
    });
    expect(attempts).toBeGreaterThan(1);
    expect(entry).toEqual([{ entry_id: "a" }]);
    await paused.close();
  });

  test("is told apart from one that computes for longer than a transaction can be idle", async () => {
    const idleMs = 2000;
    const url = String(database?.url());
    const busy = await PostgresDatabase.create({ url, idleTransactionMs: idleMs });
    /** Resolves when the server ends a transaction that begins now and is idle. */
    const longEnough = async () => {
      const idle = new pg.Client({ connectionString: url });
      idle.on("error", () => undefined);
      const ended = new Promise((resolve) => idle.once("end", resolve));
      await idle.connect();
      await idle.query(`BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`);
      await ended;
    };
    let attempts = 0;
    const compute = async (sql: Sql) => {
      attempts += 1;
      await sql("SELECT");
      await longEnough();
      return sql<{ sum: number }>("SELECT 1 + 1 AS sum");
    };
    const computed = busy.transact(scope.userId ?? null, compute, { locks: "runs", isLong: true });
    expect(await computed).toEqual([{ sum: 2 }]);
    expect(attempts).toBe(1);
    await busy.close();
  });
});

describe("a script that does not depend on the kind of database", () => {
  function* rename(sessionId: string, name: string): Script<SqlRow | undefined> {
    const changes = yield* changeRows(
      "UPDATE skein.sessions SET names = ? || '?' WHERE session_id = ? AND user_id = ?",
      name,
      sessionId,
      String(scope.userId),
    );
    if (changes !== 1) throw new SkeinError("not_found", { what: "Session", name, advice: "Try another" });
    const rows = yield* queryRows("SELECT names FROM skein.sessions WHERE session_id = ?", sessionId);
    expect(rows).toHaveLength(1);
    return yield* queryRow("SELECT names FROM skein.sessions WHERE session_id = ?", sessionId);
  }

  test("runs in one transaction as its user, which an error rolls back", async () => {
    await create(one, scope, "s");
    const direct = await PostgresDatabase.create({ url: String(database?.url()) });
    const run = (script: () => Script<unknown>) =>
      direct.transact(scope.userId ?? null, (sql) => driveScript(sql, script()));
    expect(await run(() => rename("s", "first"))).toEqual({ names: "first?" });
    function* renameBoth() {
      yield* rename("s", "second");
      yield* rename("none", "second");
    }
    await refused("not_found", () => run(renameBoth));
    function* read() {
      return yield* queryRow("SELECT names FROM skein.sessions");
    }
    expect(await run(read)).toEqual({ names: "first?" });
    await direct.close();
  });
});

describe("redaction", () => {
  test("deletes the blobs of an entry, unless another entry refers to them", async () => {
    const withBlob = async (sessionId: string, id: string, sha256: string) => {
      const blob = { sha256, bytes: 1, mimeType: "text/plain", was: "text" };
      const content = [{ type: "text", text: id, skein: { blob } }];
      const draft = { type: "message", message: { role: "user", content } } as EntryDraft;
      await one.sessions.append(scope, sessionId, [{ draft, id }]);
    };
    await create(one, scope, "s");
    await create(one, scope, "t");
    const [own, shared] = [
      await one.blobs.put(scope, Buffer.from("own")),
      await one.blobs.put(scope, Buffer.from("shared")),
    ];
    await withBlob("s", "a", own);
    await withBlob("s", "b", shared);
    await withBlob("t", "c", shared);
    await one.sessions.redact(scope, "s", ["a", "b"]);
    expect(await one.blobs.get(scope, own)).toBeNull();
    expect(await one.blobs.get(scope, shared)).not.toBeNull();
    await one.sessions.redact(scope, "t", ["c"]);
    expect(await one.blobs.get(scope, shared)).toBeNull();
  });
});

describe("round trips", () => {
  /** Returns how often the store sends something to the server. What it sends in the background can only add to that. */
  async function roundTrips(act: (attempt: number) => Promise<unknown>): Promise<number> {
    const counts: number[] = [];
    for (let attempt = 0; attempt < 5; attempt++) {
      const before = proxy.sent();
      await act(attempt);
      counts.push(proxy.sent() - before);
    }
    return Math.min(...counts);
  }

  test("an append to a session that this process has used, a record and a context take one each", async () => {
    await create(one, scope, "s");
    expect(await roundTrips((attempt) => append(one, scope, "s", `a${attempt}`))).toBe(1);
    expect(await roundTrips((attempt) => append(one, scope, "s", `b${attempt}`, `c${attempt}`))).toBe(1);
    const appendBehind = (attempt: number) => {
      const options = { expectedLeafId: attempt === 0 ? "c4" : `d${attempt - 1}` };
      const id = `d${attempt}`;
      return one.sessions.append(scope, "s", [{ draft: said(id), id }], options);
    };
    expect(await roundTrips(appendBehind)).toBe(1);
    expect(await roundTrips(() => one.sessions.context(scope, "s"))).toBe(1);
    expect(await roundTrips(() => one.sessions.get(scope, "s"))).toBe(1);
  });
});

/** Creates a session that `run-1` holds with the fence 7. */
async function createHeld(): Promise<void> {
  const { uid } = await create(one, scope, "s");
  const hold = `UPDATE skein.sessions SET fence = 7, holder_run = 'run-1' WHERE uid = '${uid}'`;
  await server.administer(String(database?.name), hold);
}

const heldBy = (runId: string, fence: number) => ({
  script: () => valueScript(true),
  held: { runId, fence },
});

describe("a state value for a run", () => {
  const set = (value: number, runId: string, fence: number) =>
    one.state.set(scope, "s", "k", value, { fence: heldBy(runId, fence) });

  test("is set only with the run and the fence in the session's row", async () => {
    await createHeld();
    await set(1, "run-1", 7);
    await refused("fenced", () => set(2, "run-1", 6));
    await refused("fenced", () => set(3, "run-2", 7));
    expect(await one.state.get(scope, "s", "k")).toEqual({ value: 1, version: 1 });
  });

  test("is not set if the run is lost while the transaction waits for the session", async () => {
    await createHeld();
    const name = String(database?.name);
    const taking = new pg.Client({ connectionString: server.urlOf(name, "postgres") });
    await taking.connect();
    await taking.query("BEGIN");
    await taking.query("UPDATE skein.sessions SET fence = 8 WHERE user_id = $1", [userKey(scope.userId)]);
    const setting = expect(set(1, "run-1", 7)).rejects.toMatchObject({ code: "fenced" });
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = '${name}' AND wait_event_type = 'Lock'`;
    await soon(async () => (await server.administer(name, waiting))[0]?.rowCount).toBe(1);
    await taking.query("COMMIT");
    await setting;
    await taking.end();
    expect(await one.state.get(scope, "s", "k")).toBeNull();
  });
});

describe("an append for a run", () => {
  test("is stored only with the run and the fence in the session's row", async () => {
    const direct = await PostgresDatabase.create({ url: String(database?.url()) });
    const appender = new SessionAppender(new SessionAccess(partsWith(direct)));
    await createHeld();
    const write = (id: string, runId: string, fence: number) =>
      appender.append(scope, "s", [{ draft: said(id), id }], { fence: heldBy(runId, fence) });
    // The first append of a process locks the session, and later ones are a single call.
    for (const round of ["locked", "at once"]) {
      await write(`held ${round}`, "run-1", 7);
      for (const [runId, fence] of [
        ["run-1", 6],
        ["run-1", 8],
        ["run-2", 7],
      ] as const)
        await refused("fenced", () => write(`not held ${round}`, runId, fence));
      await refused("fenced", () => appender.append(scope, "s", [], { fence: heldBy("run-2", 7) }));
    }
    expect(await ids(one, scope, "s")).toEqual(["held locked", "held at once"]);
    await direct.close();
  });
});
