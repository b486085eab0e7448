import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Backend } from "../../src/entry-postgres.ts";
import { openPostgres } from "../../src/entry-postgres.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { scriptedModel, temporaryFolder } from "../../src/entry-testing.ts";
import type { Skein } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { migrateDatabase, migrations, schemaVersion } from "../../src/store/postgres/migrate.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";
import type { TestDatabase, TestServer } from "../support/postgres.ts";
import { migrator, postgresFor, roles } from "../support/postgres.ts";

/** One row per migration, in order. A row is added with its migration and is never changed. */
const hashes = [
  "607ea533eea03120c2b9a2f8267fca5a679f99cb5e4da45ed89765dfa7efff36",
  "0b05f17a237c4fe0d012b67d0840c8ada79ce88f9f6dfc9794c01d3e06f50ed7",
  "2391f9d1c1928ab250e1ccc6791126dc75a4197272af8bf9c5d298a52d680e85",
  "91c3a128fd92a83b5a7fb62d38784004601c0a21af9e8a478cc453c2d2eb4455",
  "ccc2d97fe62425add27046946f7c5200b783fc171537f065a9c7329ad157eeb8",
  "db2d8d19f40404ec6b1e93ef54b7791ac9be9d9acb73a53f0842361a826f5adf",
  "bc3a6d152606a57676c7f004f2c57561fda8ea6cf39d4c9355fe9932f55a3272",
  "1b6de91a9e5b6953af4a305927852ac53a4f902af8ff32c1d47b3b81d87c36db",
  "02e19ce8d5569e31f4a77634c1435cdc3bd830e7fb494bf18ffac55adca5e4e5",
  "a54505ba656e8e351ed8d3c5ccc8d54b3b13b65cb8a3a8c549ef82f024bfe0a2",
];

test("the SQL of a migration never changes", () => {
  const found = migrations.map((sql) => createHash("sha256").update(sql()).digest("hex"));
  expect(found).toEqual(hashes);
});

/** The rows that a version wrote. They were read from a database of that version after the same few requests. */
interface WrittenRows {
  /** A token of Ann's, which a client still has. */
  readonly token: string;
  readonly tables: Readonly<Record<string, readonly object[]>>;
}

/** Versions 1 and 2 wrote the rows of their tables as version 3 did, and versions 6 to 9 as version 5 did. */
function rowsOf(version: number): WrittenRows {
  const file = new URL(
    `../golden/postgres/version-${Math.min(Math.max(version, 3), 5)}.json`,
    import.meta.url,
  );
  return JSON.parse(readFileSync(file, "utf8")) as WrittenRows;
}

/** A database as a process of an older version has left it. */
async function createOlder(server: TestServer, version: number): Promise<TestDatabase> {
  await server.createRoles();
  const database = await server.createDatabase("template1");
  const numbers = Array.from({ length: version }, (_, index) => index + 1);
  await server.administer(
    database.name,
    `SET ROLE ${migrator}`,
    "CREATE SCHEMA skein",
    "CREATE TABLE skein.migrations (number integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())",
    ...migrations.slice(0, version).map((sql) => sql()),
    ...numbers.map((number) => `INSERT INTO skein.migrations (number) VALUES (${number})`),
    "RESET ROLE",
    `ALTER FUNCTION skein.search OWNER TO ${roles.worker}`,
    ...Object.entries(rowsOf(version).tables).map(([table, rows]) => insertRows(table, rows)),
    ...["runs", "gateway_tokens"].map(continueNumbers),
  );
  return database;
}

/** Does nothing if the version did not have the table. */
function insertRows(table: string, rows: readonly object[]): string {
  const all = `json_populate_recordset(NULL::skein.${table}, $rows$${JSON.stringify(rows)}$rows$)`;
  return ifExists(table, `INSERT INTO skein.${table} OVERRIDING SYSTEM VALUE SELECT * FROM ${all}`);
}

function continueNumbers(table: string): string {
  const sequence = `pg_get_serial_sequence('skein.${table}', 'seq')`;
  return ifExists(table, `PERFORM setval(${sequence}, max(seq)) FROM skein.${table}`);
}

function ifExists(table: string, statement: string): string {
  return `DO $do$ BEGIN IF to_regclass('skein.${table}') IS NOT NULL THEN ${statement}; END IF; END $do$`;
}

test("an update by the owner alone leaves the search function to the worker", async (context) => {
  const server = await postgresFor(context);
  const database = await createOlder(server, 8);
  context.onTestFinished(() => database.drop());
  await migrateDatabase({ url: database.url(migrator) });
  const [found] = await server.administer(
    database.name,
    `SELECT f.proowner::regrole::text AS owner, t.relforcerowsecurity AS forced FROM pg_proc AS f, pg_class AS t
     WHERE f.oid = 'skein.search'::regproc AND t.oid = 'skein.entry_search'::regclass`,
  );
  expect(found?.rows).toEqual([{ owner: roles.worker, forced: true }]);
});

test("an update frees the loop turns of named users that were recorded without their user", async (context) => {
  const server = await postgresFor(context);
  const database = await createOlder(server, 9);
  context.onTestFinished(() => database.drop());
  await server.administer(
    database.name,
    `INSERT INTO skein.loop_turns (uid, owner, lease_until, tenant)
     SELECT uid, 'another process', ${Number.MAX_SAFE_INTEGER}, '' FROM skein.sessions`,
  );
  const addresses = { url: database.url(), workerUrl: database.url(roles.worker) };
  const backend = await openPostgres({ ...addresses, migratorUrl: database.url(migrator) });
  context.onTestFinished(() => backend.close());
  const skein = await createSkein({ backend, config: null, env: {}, quiet: true, workers: false });
  context.onTestFinished(() => skein.close());
  expect(await skein.session({ userId: "ann", sessionId: "trip" }).startTurn()).toBe(true);
  // The turns of the unnamed user were recorded correctly.
  await expect(skein.session({ sessionId: "notes" }).startTurn()).rejects.toMatchObject({ code: "conflict" });
});

describe.each(Array.from({ length: schemaVersion - 1 }, (_, index) => index + 1))(
  "tables of version %i",
  (version) => {
    let database: TestDatabase;
    let backend: Backend;
    let skein: Skein;
    let folder: TemporaryFolder;

    beforeEach(async (context) => {
      folder = temporaryFolder();
      database = await createOlder(await postgresFor(context), version);
      const addresses = {
        url: database.url(),
        workerUrl: database.url(roles.worker),
        migratorUrl: database.url(migrator),
      };
      backend = await openPostgres(addresses);
      skein = await createSkein({
        backend,
        dir: folder.path,
        config: null,
        env: {},
        quiet: true,
        app: "travel",
        models: { "rehearsal/script": scriptedModel(() => ({ text: "Eat in Dotonbori." })) },
        agents: [defineAgent({ id: "main", model: "rehearsal/script" })],
      });
    });
    afterEach(async () => {
      await skein.close({ graceMs: 0 });
      await backend.close();
      await database.drop();
      folder.remove();
    });

    test("keep their sessions, state, blobs and search hits", async () => {
      const scope = { userId: "ann", agentId: "main" };
      const { sessions, search, state, blobs } = skein.store;
      expect(await sessions.list(scope, {})).toMatchObject({ sessions: [{ sessionId: "trip" }] });
      expect(await sessions.list({}, {})).toMatchObject({ sessions: [{ sessionId: "notes" }] });
      expect((await sessions.context(scope, "trip"))?.messages.slice(0, 2)).toMatchObject([
        { role: "user", content: "Plan three days in Kyoto" },
        { role: "assistant", content: [{ text: "Walk to the bamboo garden early in the morning." }] },
      ]);
      expect(await state.get(scope, "trip", "budget")).toMatchObject({ value: { euros: 900 } });
      const [blob] = rowsOf(version).tables.blobs as readonly { readonly sha256: string }[];
      const bytes = await blobs.get(scope, blob?.sha256 ?? "");
      expect(new TextDecoder().decode(bytes ?? undefined)).toBe("a map of Kyoto");
      await expect
        .poll(() => search.search(scope, { text: "gardens" }))
        .toMatchObject({ hits: [{ sessionId: "trip" }], behind: 0 });
    });

    test.runIf(version >= 2)("keep their runs, and execute accepted input once", async () => {
      const trip = skein.session({ userId: "ann", sessionId: "trip" });
      const { runId } = await trip.accept("And one day in Osaka?", { idempotencyKey: "osaka" });
      expect(await skein.ended(runId, {}, "ann")).toMatchObject({
        outcome: { reply: "Eat in Dotonbori." },
      });
      const runs = await skein.runs.list({}, "ann");
      expect(runs.map(({ outcome }) => outcome?.reply)).toEqual([
        "Eat in Dotonbori.",
        "Walk to the bamboo garden early in the morning.",
      ]);
      await trip.send("And Nara?").result;
      expect(await skein.runs.list({}, "ann")).toHaveLength(3);
    });

    test.runIf(version >= 3)("keep their tokens", async () => {
      const gateway = await mountOverHttp(skein, folder.path);
      const answer = await fetch(`${gateway.url}/rpc/sessions.list`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${rowsOf(version).token}` },
        body: "{}",
      });
      expect(await answer.json()).toMatchObject({ sessions: [{ sessionId: "trip" }] });
      await gateway.close();
    });
  },
);
