import { describe, expect, test } from "vitest";
import type { SqlValue } from "../../src/store/postgres/database.ts";
import { checkDatabase, migrateDatabase, schemaVersion } from "../../src/store/postgres/migrate.ts";
import type { TestDatabase, TestServer } from "../support/postgres.ts";
import { migrator, openPostgresStore, postgresFor, roles } from "../support/postgres.ts";
import { append, create, ids } from "../support/store-calls.ts";

const scope = { userId: "ann", agentId: "main" };

/** A database without tables. */
async function emptyDatabase(server: TestServer): Promise<TestDatabase> {
  await server.createRoles();
  return server.createDatabase("template1");
}

describe("migrations", () => {
  test("several first starts at the same time create the tables once", async (context) => {
    const server = await postgresFor(context);
    const database = await emptyDatabase(server);
    const migrations = Array.from({ length: 6 }, () =>
      migrateDatabase({ url: database.url(migrator), roles }),
    );
    await Promise.all(migrations);
    const [applied] = await server.administer(database.name, "SELECT number FROM skein.migrations");
    expect(applied?.rows).toEqual(
      Array.from({ length: schemaVersion }, (_, index) => ({ number: index + 1 })),
    );
    const store = await openPostgresStore({ url: database.url() });
    await create(store, scope, "s");
    await append(store, scope, "s", "a");
    expect(await ids(store, scope, "s")).toEqual(["a"]);
    await store.close();
    await database.drop();
  });

  test("repeating them changes nothing and keeps the data", async (context) => {
    const server = await postgresFor(context);
    const database = await server.createDatabase();
    const store = await openPostgresStore({ url: database.url() });
    await create(store, scope, "s");
    await append(store, scope, "s", "a");
    await migrateDatabase({ url: database.url(migrator), roles });
    await append(store, scope, "s", "b");
    expect(await ids(store, scope, "s")).toEqual(["a", "b"]);
    await store.close();
    await database.drop();
  });

  test("one role can own the tables and serve clients", async (context) => {
    const server = await postgresFor(context);
    const database = await emptyDatabase(server);
    await migrateDatabase({ url: database.url(migrator) });
    const store = await openPostgresStore({ url: database.url(migrator) });
    await create(store, scope, "s");
    await append(store, scope, "s", "a word");
    expect((await store.search.search(scope, { text: "word" })).hits).toHaveLength(1);
    await store.close();
    await database.drop();
  });

  test("the words of an older version are written again, and a search reports sessions without them", async (context) => {
    const server = await postgresFor(context);
    const database = await server.createDatabase();
    const store = await openPostgresStore({ url: database.url() });
    for (const name of ["s", "t"]) {
      await create(store, scope, name);
      await append(store, scope, name, `signing up in ${name}`);
    }
    const older = "UPDATE skein.entry_search SET codes = NULL, words = 'old:1'::tsvector";
    await server.administer(database.name, older);
    expect(await store.search.search(scope, { text: "signed" })).toEqual({ hits: [], behind: 2 });
    const workerUrl = database.url(roles.worker);
    const next = await openPostgresStore({ url: database.url(), workerUrl });
    await expect
      .poll(() => next.search.search(scope, { text: "signed" }))
      .toMatchObject({ hits: [{}, {}], behind: 0 });
    await next.close();
    await store.close();
    await database.drop();
  });

  test("a database without tables is behind", async (context) => {
    const server = await postgresFor(context);
    const database = await emptyDatabase(server);
    await expect(openPostgresStore({ url: database.url() })).rejects.toMatchObject({
      code: "database_behind",
      details: { found: 0, needed: schemaVersion },
    });
    await database.drop();
  });

  test("a database of a newer version is neither opened nor migrated", async (context) => {
    const server = await postgresFor(context);
    const database = await server.createDatabase();
    await server.administer(database.name, `INSERT INTO skein.migrations VALUES (${schemaVersion + 1})`);
    const ahead = { code: "database_ahead", details: { found: schemaVersion + 1, needed: schemaVersion } };
    await expect(openPostgresStore({ url: database.url() })).rejects.toMatchObject(ahead);
    await expect(migrateDatabase({ url: database.url(migrator), roles })).rejects.toMatchObject(ahead);
    await database.drop();
  });

  test("a failed migration leaves nothing behind", async (context) => {
    const server = await postgresFor(context);
    const database = await emptyDatabase(server);
    const unknown = { app: "no_such_role", worker: roles.worker };
    await expect(migrateDatabase({ url: database.url(migrator), roles: unknown })).rejects.toThrow(
      "no_such_role",
    );
    const [schemas] = await server.administer(
      database.name,
      "SELECT FROM pg_namespace WHERE nspname = 'skein'",
    );
    expect(schemas?.rowCount).toBe(0);
    await database.drop();
  });

  test("a server older than PostgreSQL 15 is rejected", async () => {
    const old = async (_text: string, _values?: readonly SqlValue[]) => [
      { number: "140012", version: "14.12" },
    ];
    const opened = checkDatabase(old as never, "db.example.org/skein");
    await expect(opened).rejects.toMatchObject({ code: "database_too_old" });
    await expect(opened).rejects.toThrow("runs PostgreSQL 14.12, but Skein needs version 15 or later");
  });
});
