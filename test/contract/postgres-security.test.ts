import pg from "pg";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/entry-store.ts";
import { gatewayTables } from "../../src/store/postgres/schema-gateway.ts";
import { userTables } from "../../src/store/postgres/schema-tables.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { migrator, openPostgresStore, postgresFor, roles } from "../support/postgres.ts";
import { append, create } from "../support/store-calls.ts";

const users = [{ userId: "ann", agentId: "main" }, { userId: "bob", agentId: "main" }, { agentId: "main" }];
const unnamed = "~unnamed";
const search = "SELECT * FROM skein.search($1, NULL, NULL, NULL, NULL, true, NULL, $2, $3, '{false}', 100)";

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
    const searching = asUser(roles.app, user, (client) => client.query(search, [asked, "'x'", ["x"]]));
    await expect(searching).rejects.toMatchObject({ code: "42501" });
  });

  test("searches only the user's entries, even for another user's form of a word", async () => {
    const words = await asUser(roles.worker, null, async (client) => {
      const sql = "SELECT DISTINCT lexeme FROM skein.entry_search, unnest(words) WHERE lexeme LIKE '%secret'";
      return (await client.query(sql)).rows.map((row) => String(row.lexeme));
    });
    expect(words).toHaveLength(users.length);
    const query = words.map((word) => `'${word}'`).join(" | ");
    const found = await asUser(roles.app, "ann", (client) =>
      client.query(search, ["ann", query, [words[0]]]),
    );
    const sessions = await store.sessions.find({ userId: "ann" }, { by: "sessionId", sessionId: "s" });
    expect(found.rows.map((row) => row.session_uid)).toEqual(sessions.map(({ uid }) => uid));
  });

  test("has search functions that cannot be redirected by the caller's search path", async () => {
    const found = await asUser(migrator, null, (client) =>
      client.query(
        `SELECT proname, prosecdef, proconfig FROM pg_proc WHERE pronamespace = 'skein'::regnamespace ORDER BY 1`,
      ),
    );
    expect(found.rows.filter((row) => row.prosecdef).map((row) => row.proname)).toEqual(["search"]);
    for (const row of found.rows) expect(row.proconfig).toEqual(["search_path=pg_catalog, pg_temp"]);
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
