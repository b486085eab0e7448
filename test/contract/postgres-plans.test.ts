import { afterAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Scope, SessionQuery, Store } from "../../src/entry-store.ts";
import type { PostgresDatabase, Sql, SqlValue } from "../../src/store/postgres/database.ts";
import { PostgresDatabase as Database } from "../../src/store/postgres/database.ts";
import { migrateDatabase } from "../../src/store/postgres/migrate.ts";
import { countSessions, findSessions, listSessions } from "../../src/store/postgres/session-lists.ts";
import type { TestDatabase, TestServer } from "../support/postgres.ts";
import { migrator, openPostgresStore, postgresFor } from "../support/postgres.ts";
import { create, said } from "../support/store-calls.ts";

const scope: Scope = { userId: "ann", agentId: "main" };
const entries = 400;

let server: TestServer | null = null;
let database: TestDatabase | null = null;
let store: Store;
let direct: PostgresDatabase;

/** A database with many sessions of many users, so that reading all of them is never the best plan. */
beforeEach(async (context) => {
  if (database !== null) return;
  server = await postgresFor(context);
  database = await server.createDatabase();
  store = await openPostgresStore({ url: database.url() });
  direct = await Database.create({ url: database.url() });
  await create(store, scope, "s", { label: "l", spawnedBy: "agent:main:main" });
  await create(store, scope, "long");
  for (let index = 0; index < entries; index += 50) {
    const items = Array.from({ length: 50 }, (_, at) => ({
      draft: said(`word ${at}`),
      id: `e${index + at}`,
    }));
    await store.sessions.append(scope, "long", items);
  }
  await insertManyUsers(database.name);
});
afterAll(async () => {
  await direct?.close();
  await store?.close();
  await database?.drop();
});

/** Inserts many sessions of many users, each with a word, as copies of a session `s`. */
async function insertManyUsers(name: string): Promise<void> {
  await server?.administer(
    name,
    `INSERT INTO skein.sessions SELECT (json_populate_record(s, json_build_object(
       'uid', 'u' || n, 'user_id', 'user' || n % 50, 'key', 'k' || n, 'session_id', 'i' || n, 'id_key', 'i' || n,
       'label', 'l' || n, 'updated_at', n, 'created_at', n, 'tokens', n, 'cost', n, 'sort_name', 'n' || n,
       'spawned_by', 'k' || n % 100, 'forked_from', 'i' || n % 100
     ))).* FROM skein.sessions AS s, generate_series(1, 20000) AS n WHERE s.session_id = 's'`,
    `INSERT INTO skein.entry_search SELECT 'u' || n, 0, 0, 'user' || n % 50, 'user', n, 1, ('''w' || n || '''')::tsvector, '\\x01'
     FROM generate_series(1, 20000) AS n`,
    "ANALYZE",
  );
}

/** Returns the tables that a statement reads as a whole. */
async function wholeReads(run: (database: PostgresDatabase) => Promise<unknown>): Promise<string[]> {
  const plans: string[] = [];
  const explaining = {
    read: async (userId: string | null, text: string, values: readonly SqlValue[]) => {
      const rows = await direct.read<{ "QUERY PLAN": string }>(userId, `EXPLAIN ${text}`, values);
      plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
      return [];
    },
  };
  await run(explaining as unknown as PostgresDatabase);
  expect(plans.join("\n")).toContain("Index");
  return plans.flatMap((plan) => [...plan.matchAll(/Seq Scan on (\w+)/g)].map(([, table]) => String(table)));
}

const queries: Readonly<Record<string, SessionQuery>> = {
  "no filter": {},
  "archived sessions": { archived: true },
  "a kind": { kinds: ["cron"] },
  "a channel": { channels: ["matrix"] },
  "a label": { label: "l5" },
  "a text": { text: "abc" },
  "a time": { activeSince: 5 },
  "a parent": { spawnedBy: "k5" },
  "several parents": { spawnedBy: ["k5", "k6"] },
  forks: { forkedFrom: ["i5"] },
  uids: { uids: ["u1", "u2"] },
  "a tree": { reach: { treeOf: "k5", agentIds: [] } },
  "agents and a tree": { reach: { treeOf: "k5", agentIds: ["main"] } },
  created: { sort: "created" },
  tokens: { sort: "tokens" },
  cost: { sort: "cost" },
  name: { sort: "name" },
};

describe("with many sessions", () => {
  test.each(Object.entries(queries))("a list by %s uses an index, also after a cursor", async (_, query) => {
    const place = { value: query.sort === "name" ? "n5" : 5, uid: "u5" };
    for (const behind of [null, place])
      expect(await wholeReads((db) => listSessions(db, { userId: "user5" }, query, 11, behind))).toEqual([]);
    expect(await wholeReads((db) => countSessions(db, { userId: "user5" }, query))).toEqual([]);
  });

  test.each([
    { by: "key", key: "k5" },
    { by: "spawnId", spawnId: "x" },
    { by: "sessionId", sessionId: "i5" },
    { by: "uid", uid: "u5" },
    { by: "label", label: "l5", agentId: "main" },
    { by: "prefix", prefix: "i5" },
  ] as const)("a lookup by $by uses an index", async (lookup) => {
    expect(await wholeReads((db) => findSessions(db, { userId: "user5" }, lookup))).toEqual([]);
  });

  test("an unrestricted list reads its rows in order, and no more of them than it returns", async () => {
    const plans: string[] = [];
    const explaining = {
      read: async (userId: string | null, text: string, values: readonly SqlValue[]) => {
        const rows = await direct.read<{ "QUERY PLAN": string }>(userId, `EXPLAIN ${text}`, values);
        plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
        return [];
      },
    } as unknown as PostgresDatabase;
    for (const sort of ["updated", "created", "tokens", "cost", "name"] as const)
      await listSessions(explaining, { userId: "user5" }, { sort }, 11, null);
    for (const plan of plans) expect(plan).not.toContain("Sort");
  });
});

describe("a search among many users", () => {
  test("reads no table as a whole, although row-level security applies to the serving role", async () => {
    const scans = await direct.transact("user5", async (sql) => {
      const search =
        "SELECT skein.search('user5', NULL, NULL, NULL, NULL, true, NULL, $1, '{1}', NULL, 0, 1000000, 100, 100)";
      const statistics = 1;
      expect(await sql(search, [["'w5'"]])).toHaveLength(statistics + 1);
      expect(await sql(search, [["'w6'"]])).toHaveLength(statistics);
      return sql<{ relname: string }>(
        "SELECT relname FROM pg_stat_xact_user_tables WHERE schemaname = 'skein' AND seq_scan > 0",
      );
    });
    expect(scans).toEqual([]);
  });

  test("looks up each word once, however many sessions a user has whom the statistics do not know", async () => {
    await insertUnknownUser(String(database?.name));
    expect(await direct.transact("bob", searchAsBob)).toEqual({ hits: 10, lookups: 2, wholeReads: 0 });
  });

  test("uses the index on words also if one role owns the tables and serves clients", async (context) => {
    const single = await (await postgresFor(context)).createDatabase("template1");
    onTestFinished(() => single.drop());
    const url = single.url(migrator);
    await migrateDatabase({ url });
    const [ownStore, owner] = [await openPostgresStore({ url }), await Database.create({ url })];
    onTestFinished(async () => void (await Promise.all([ownStore.close(), owner.close()])));
    await create(ownStore, scope, "s");
    await insertManyUsers(single.name);
    await insertUnknownUser(single.name);
    expect(await owner.transact("bob", searchAsBob)).toEqual({ hits: 10, lookups: 2, wholeReads: 0 });
  });
});

/** Inserts a user with 50 sessions and 500 entries that have one word in common. Needs a session `s` to copy. */
async function insertUnknownUser(name: string): Promise<void> {
  await server?.administer(
    name,
    `INSERT INTO skein.sessions SELECT (json_populate_record(s, json_build_object(
       'uid', 'bob' || n, 'user_id', 'bob', 'key', 'k' || n, 'session_id', 'i' || n, 'id_key', 'i' || n, 'label', 'l' || n
     ))).* FROM skein.sessions AS s, generate_series(1, 50) AS n WHERE s.session_id = 's'`,
    `INSERT INTO skein.entry_search
       SELECT 'bob' || n % 50 + 1, n, 0, 'bob', 'user', n, 1, ('bee b' || n)::tsvector, '\\x01'
       FROM generate_series(1, 500) AS n`,
  );
}

/** Searches for two words, and counts how the table of words was read. */
async function searchAsBob(sql: Sql): Promise<object> {
  const search =
    "SELECT skein.search('bob', NULL, NULL, NULL, NULL, true, NULL, $1, '{1,1}', NULL, 0, 1000000, 100, 10)";
  const countReads = async () => {
    const [reads] = await sql<{ lookups: number; whole: number }>(
      `SELECT pg_stat_get_xact_numscans('skein.entry_search_words'::regclass) AS lookups,
         pg_stat_get_xact_numscans('skein.entry_search'::regclass) AS whole`,
    );
    return reads ?? { lookups: 0, whole: 0 };
  };
  const before = await countReads();
  const [, ...hits] = await sql(search, [["'bee'", "'b7'"]]);
  const after = await countReads();
  return {
    hits: hits.length,
    lookups: after.lookups - before.lookups,
    wholeReads: after.whole - before.whole,
  };
}

describe("the context", () => {
  const read = async (): Promise<number> => {
    const { rows } = await direct.call("SELECT * FROM skein.read_context('ann', 'main', 'long', NULL)", []);
    return rows.length;
  };

  test("is read from the last compaction on, however long the session is", async () => {
    const session = 1;
    expect(await read()).toBe(session + entries);
    const kept = `e${entries - 5}`;
    const draft = { type: "compaction", summary: "S", firstKeptEntryId: kept, tokensBefore: 1 } as const;
    await store.sessions.append(scope, "long", [{ draft, id: "sum" }]);
    expect(await read()).toBe(session + 5 + 1);
    await store.sessions.branch(scope, "long", "e3");
    expect(await read()).toBe(session + 4 + 1);
    await store.sessions.branch(scope, "long", "sum");
    const context = await store.sessions.context(scope, "long");
    expect(context?.entryIds).toEqual([
      "sum",
      ...Array.from({ length: 5 }, (_, at) => `e${entries - 5 + at}`),
    ]);
  });
});
