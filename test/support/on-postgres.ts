// Runs before each test file of the project `postgres`. The same files also run in memory and in folders.
import { afterAll, afterEach } from "vitest";
import type { ScriptEngine } from "../../src/core/script.ts";
import { inMemory } from "../../src/store/files/database.ts";
import { PostgresDatabase } from "../../src/store/postgres/database.ts";
import { PostgresEngine } from "../../src/store/postgres/ledger-engine.ts";
import { closeEmptyStores, openStoresWith } from "./empty-store.ts";
import { borrowDatabase, openPostgresForTest, roles } from "./postgres.ts";
import { openEnginesWith } from "./run-books.ts";

const engines = new Map<string, ScriptEngine>();
const endings: (() => Promise<void>)[] = [];

openStoresWith(openPostgresForTest);
openEnginesWith((path) => {
  const known = engines.get(path);
  if (known !== undefined) return known;
  const engine = openEngine();
  if (path !== inMemory) engines.set(path, engine);
  return engine;
});

/** A ledger of its own. Its database is opened on first use. */
function openEngine(): ScriptEngine {
  let opening: Promise<PostgresEngine> | null = null;
  const open = async () => {
    const { database, giveBack } = await borrowDatabase();
    const pool = await PostgresDatabase.create({ url: database.url(roles.worker), maxConnections: 4 });
    endings.push(async () => {
      await pool.close();
      await giveBack();
    });
    return new PostgresEngine(pool);
  };
  const opened = () => {
    opening ??= open();
    return opening;
  };
  return {
    read: async (script) => (await opened()).read(script),
    change: async (...args) => (await opened()).change(...args),
    changeEach: async (changes) => (await opened()).changeEach(changes),
    version: () => 0,
    mark: () => null,
    watch: () => () => undefined,
  };
}

async function closeAll(): Promise<void> {
  engines.clear();
  await closeEmptyStores();
  await Promise.all(endings.splice(0).map((end) => end()));
}

afterEach(closeAll);
afterAll(async () => {
  await closeAll();
  openStoresWith(null);
  openEnginesWith(null);
});
