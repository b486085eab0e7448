import pg from "pg";
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Store } from "../../src/entry-store.ts";
import { migrateDatabase } from "../../src/store/postgres/migrate.ts";
import { gatewayTables } from "../../src/store/postgres/schema-gateway.ts";
import { runTables } from "../../src/store/postgres/schema-runs.ts";
import { userTables } from "../../src/store/postgres/schema-tables.ts";
import type { TestDatabase, TestServer } from "../support/postgres.ts";
import { migrator, openPostgresStore, postgresFor, roles } from "../support/postgres.ts";
import { append, create } from "../support/store-calls.ts";

const users = [{ userId: "ann", agentId: "main" }, { userId: "bob", agentId: "main" }, { agentId: "main" }];
const unnamed = "~unnamed";
const search =
  "SELECT * FROM skein.search($1, NULL, NULL, NULL, NULL, true, NULL, $2, '{1}', NULL, 0, $3, 100, 100)";
const always = Number.MAX_SAFE_INTEGER;

let database: TestDatabase | null = null;
let store: Store;

beforeEach(async (context) => {
  if (database !== null) return;
  database = await (await postgresFor(context)).createDatabase();
  store = await openPostgresStore({ url: database.url() });
  for (const scope of users) {
    await create(store, scope, "s");
    await append(store, scope, "s", `secret of ${scope.userId ?? "nobody"}`);
    await store.state.set(scope, "s", "k", "secret");
    await store.blobs.put(scope, Buffer.from("secret"));
    const [{ place } = { place: "" }] = (await store.search.unembedded?.(scope, "m", { limit: 1 })) ?? [];
    await store.search.embed?.(scope, "m", [{ place, vector: [1] }]);
  }
});
afterAll(async () => {
  await store?.close();
  await database?.drop();
});

/** Runs statements as a database role with a user, in one transaction that is rolled back. */
async function asUser<T>(
  role: string,
  user: string | null,
  act: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: database?.url(role) });
  await client.connect();
  try {
    await client.query("BEGIN");
    if (user !== null) await client.query("SELECT set_config('skein.user_id', $1, true)", [user]);
    return await act(client);
  } finally {
    await client.end();
  }
}

async function owners(role: string, user: string | null, table: string): Promise<string[]> {
  const sql = `SELECT DISTINCT user_id FROM skein.${table} ORDER BY user_id`;
  return asUser(role, user, async (client) => (await client.query(sql)).rows.map((row) => row.user_id));
}

describe.each(userTables)("row-level security of %s", (table) => {
  test.each([
    [roles.app, null, []],
    [roles.app, "", []],
    [roles.app, "eve", []],
    [roles.app, "ann", ["ann"]],
    [roles.app, unnamed, [unnamed]],
    [migrator, null, []],
    [migrator, "bob", ["bob"]],
    [roles.worker, null, ["ann", "bob", unnamed]],
  ])("%s as user %s sees the rows of %j", async (role, user, expected) => {
    expect(await owners(role, user, table)).toEqual(expected);
  });

  test("another user's rows can be neither changed, nor deleted, nor created", async () => {
    await asUser(roles.app, "eve", async (client) => {
      expect((await client.query(`UPDATE skein.${table} SET user_id = 'eve'`)).rowCount).toBe(0);
      expect((await client.query(`DELETE FROM skein.${table}`)).rowCount).toBe(0);
    });
    const giveAway = `UPDATE skein.${table} SET user_id = 'eve'`;
    await expect(asUser(roles.app, "ann", (client) => client.query(giveAway))).rejects.toMatchObject({
      code: "42501",
    });
  });
});

describe("row-level security of the run tables", () => {
  /** Counts what a role sees in a table with the setting, and changes and deletes as much as it can. */
  async function reach(role: string, setting: string | null, table: string): Promise<(number | null)[]> {
    return asUser(role, null, async (client) => {
      if (setting !== null) await client.query("SELECT set_config('skein.run_user', $1, true)", [setting]);
      const seen = await client.query(`SELECT FROM skein.${table}`);
      return [seen.rowCount, (await client.query(`DELETE FROM skein.${table}`)).rowCount];
    });
  }

  test.each(runTables)("a user reaches only their own rows of %s", async (table) => {
    for (const [at, user] of ["ann", "bob"].entries()) await plantRow(table, user, at);
    expect(await reach(roles.worker, null, table)).toEqual([2, 2]);
    expect(await reach(roles.app, "uann", table)).toEqual([1, 1]);
    for (const setting of [null, "", "*", "u", "ueve", "ann"])
      expect([setting, ...(await reach(roles.app, setting, table))]).toEqual([setting, 0, 0]);
    for (const setting of [null, "", "ueve"])
      expect([setting, ...(await reach(migrator, setting, table))]).toEqual([setting, 0, 0]);
  });
});

/** Stores a row with some value in every column that needs one. */
async function plantRow(table: string, user: string, at: number): Promise<void> {
  const client = new pg.Client({ connectionString: database?.url(migrator) });
  await client.connect();
  const { rows: columns } = await client.query(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns WHERE table_schema = 'skein'
     AND table_name = $1 AND is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'`,
    [table],
  );
  const values = columns.map(({ name, type }) => {
    if (name === "user") return user;
    return type === "text" ? `${name} of ${user}` : at;
  });
  const names = columns.map(({ name }) => `"${name}"`).join();
  await client.query("BEGIN");
  await client.query("SELECT set_config('skein.run_user', $1, true)", [`u${user}`]);
  const places = values.map((_, index) => `$${index + 1}`).join();
  await client.query(`INSERT INTO skein.${table} (${names}) VALUES (${places})`, values);
  await client.query("COMMIT");
  await client.end();
}

describe("the database of the PostgreSQL store", () => {
  test("applies row-level security to every table with users' data, also for the owner", async () => {
    const found = await asUser(migrator, null, (client) =>
      client.query(
        `SELECT c.relname AS name, c.relrowsecurity AND c.relforcerowsecurity AS forced FROM pg_class AS c
         WHERE c.relnamespace = 'skein'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1`,
      ),
    );
    const others = found.rows.filter(({ forced }) => !forced).map(({ name }) => name);
    expect(others).toEqual([...gatewayTables.toSorted(), "migrations"]);
    expect(found.rows.map(({ name }) => name)).toEqual(expect.arrayContaining([...userTables]));
  });

  describe("with one role that owns the tables and serves clients", () => {
    let server: TestServer;
    let single: TestDatabase;

    beforeEach(async (context) => {
      server = await postgresFor(context);
      single = await server.createDatabase("template1");
      context.onTestFinished(() => single.drop());
    });

    const openSingle = (role = migrator) => migrateDatabase({ url: single.url(role) });
    const exempt = async (): Promise<string[]> => {
      const [found] = await server.administer(
        single.name,
        `SELECT relname AS name FROM pg_class WHERE relnamespace = 'skein'::regnamespace AND relkind IN ('r', 'p')
           AND relrowsecurity AND NOT relforcerowsecurity`,
      );
      return (found?.rows ?? []).map(({ name }) => String(name));
    };

    test("exempts it from the policy on words, until a worker owns the search function", async () => {
      await openSingle();
      expect(await exempt()).toEqual(["entry_search"]);
      await migrateDatabase({ url: single.url(migrator), roles });
      expect(await exempt()).toEqual([]);
      for (const role of [migrator, roles.app]) await openSingle(role);
      expect(await exempt()).toEqual([]);
      await server.administer(single.name, `ALTER FUNCTION skein.search OWNER TO ${migrator}`);
      await openSingle(roles.app);
      expect(await exempt()).toEqual([]);
      await openSingle();
      expect(await exempt()).toEqual(["entry_search"]);
    });

    test("works for owners with any name", async () => {
      await server.administer(
        "postgres",
        `DO $$ BEGIN CREATE ROLE "Skein.Owner" LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
        `ALTER DATABASE ${single.name} OWNER TO "Skein.Owner"`,
      );
      await openSingle("Skein.Owner");
      expect(await exempt()).toEqual(["entry_search"]);
    });

    test("finds and embeds only the user's entries, even for another user's form of a word", async () => {
      await openSingle();
      const own = await openPostgresStore({ url: single.url(migrator) });
      onTestFinished(() => own.close());
      for (const scope of users) {
        await create(own, scope, "s");
        await append(own, scope, "s", `secret of ${scope.userId ?? "nobody"}`);
      }
      for (const scope of users) {
        const { hits } = await own.search.search(scope, { text: "secret" });
        expect(hits.map((hit) => hit.snippet)).toEqual([`secret of ${scope.userId ?? "nobody"}`]);
        expect(await own.search.unembedded?.(scope, "m", { limit: 10 })).toHaveLength(1);
      }
      const [stored] = await server.administer(
        single.name,
        "SELECT DISTINCT lexeme FROM skein.entry_search, unnest(words) WHERE lexeme LIKE '%secret'",
      );
      const words = (stored?.rows ?? []).map(({ lexeme }) => `'${lexeme}'`);
      expect(words).toHaveLength(users.length);
      const client = new pg.Client({ connectionString: single.url(migrator) });
      await client.connect();
      onTestFinished(() => client.end());
      await client.query("BEGIN");
      await client.query("SELECT set_config('skein.user_id', 'ann', true)");
      const { rows } = await client.query(search, ["ann", [words.join(" | ")], always]);
      const statistics = 1;
      expect(rows).toHaveLength(statistics + 1);
      await expect(client.query(search, ["bob", words, always])).rejects.toMatchObject({ code: "42501" });
    });
  });

  test.each(gatewayTables)("lets only the role that works for all users read and write %s", async (table) => {
    for (const statement of [`SELECT FROM skein.${table}`, `DELETE FROM skein.${table}`]) {
      const trying = asUser(roles.app, "ann", (client) => client.query(statement));
      await expect(trying).rejects.toMatchObject({ code: "42501" });
      expect((await asUser(roles.worker, null, (client) => client.query(statement))).rowCount).toBe(0);
    }
  });

  test("does not let the serving role read a partition, or bypass the policies", async () => {
    for (const role of [roles.app, roles.worker]) {
      const reading = asUser(role, "ann", (client) => client.query("SELECT FROM skein.entries_0"));
      await expect(reading).rejects.toMatchObject({ code: "42501" });
    }
    for (const statement of [
      "SET ROLE skein_worker",
      "ALTER TABLE skein.sessions DISABLE ROW LEVEL SECURITY",
    ]) {
      const trying = asUser(roles.app, "ann", (client) => client.query(statement));
      await expect(trying).rejects.toMatchObject({ code: "42501" });
    }
  });

  test.each([
    ["no user", null, "ann"],
    ["an empty user", "", ""],
    ["a different user", "bob", "ann"],
  ])("does not search with %s", async (_, user, asked) => {
    const searching = asUser(roles.app, user, (client) => client.query(search, [asked, ["'x'"], always]));
    await expect(searching).rejects.toMatchObject({ code: "42501" });
  });

  test("searches only the user's entries, even for another user's form of a word", async () => {
    const words = await asUser(roles.worker, null, async (client) => {
      const sql = "SELECT DISTINCT lexeme FROM skein.entry_search, unnest(words) WHERE lexeme LIKE '%secret'";
      return (await client.query(sql)).rows.map((row) => String(row.lexeme));
    });
    expect(words).toHaveLength(users.length);
    const query = words.map((word) => `'${word}'`).join(" | ");
    const found = await asUser(roles.app, "ann", (client) => client.query(search, ["ann", [query], always]));
    const [, ...entries] = found.rows;
    const sessions = await store.sessions.find({ userId: "ann" }, { by: "sessionId", sessionId: "s" });
    expect(entries.map((row) => row.session_uid)).toEqual(sessions.map(({ uid }) => uid));
  });

  test("has functions with their owner's rights that cannot be redirected by the caller's search path", async () => {
    const found = await asUser(migrator, null, (client) =>
      client.query(
        `SELECT proname, prosecdef, proconfig FROM pg_proc WHERE pronamespace = 'skein'::regnamespace ORDER BY 1`,
      ),
    );
    expect(found.rows.filter((row) => row.prosecdef).map((row) => row.proname)).toEqual([
      "last_turn",
      "search",
      "taken_slots",
    ]);
    const forSearch = ["plan_cache_mode=force_custom_plan", "hash_mem_multiplier=1000"];
    for (const row of found.rows)
      expect(row.proconfig).toEqual([
        "search_path=pg_catalog, pg_temp",
        ...(row.proname === "search" ? forSearch : []),
      ]);
  });

  test("keeps the user of one transaction out of the next one on the same connection", async () => {
    const one = await openPostgresStore({ url: String(database?.url()), maxConnections: 1 });
    for (const scope of users) {
      const text = scope.userId ?? "nobody";
      const { hits } = await one.search.search(scope, { text: "secret" });
      expect(hits.map((hit) => hit.snippet)).toEqual([`secret of ${text}`]);
    }
    await one.close();
  });
});
