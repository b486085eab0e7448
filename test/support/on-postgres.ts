// Runs before each test file of the project `postgres`. The same files also run in memory and in folders.
import { afterAll, afterEach, beforeEach } from "vitest";
import { inMemory } from "../../src/store/files/database.ts";
import { PostgresDatabase } from "../../src/store/postgres/database.ts";
import { PostgresEngine } from "../../src/store/postgres/ledger-engine.ts";
import { PostgresBackend } from "../../src/store/postgres/store.ts";
import { storeIn } from "./empty-store.ts";
import type { TestDatabase } from "./postgres.ts";
import { borrowDatabase, migrator, roles } from "./postgres.ts";
import type { TestEngine } from "./run-books.ts";
import { openEnginesWith } from "./run-books.ts";

/** What the current test, or the whole file, has opened. */
class Opened {
  readonly databases = new Map<string, Promise<TestDatabase>>();
  readonly engines = new Map<string, TestEngine>();
  readonly connections = new Set<{ close(): Promise<void> }>();
  readonly borrowed: (() => Promise<void>)[] = [];

  async borrow(): Promise<TestDatabase> {
    const { database, giveBack } = await borrowDatabase();
    this.borrowed.push(giveBack);
    return database;
  }

  async close(): Promise<void> {
    await Promise.all([...this.connections].map((each) => each.close()));
    await Promise.all(this.borrowed.map((giveBack) => giveBack()));
  }
}

const forFile = new Opened();
let current = forFile;

storeIn({
  open: async (dir) => {
    const opened = current;
    const database = dir === undefined ? await opened.borrow() : await databaseFor(dir);
    // A lease that has expired by a test's clock is taken over at once.
    const options = { url: database.url(migrator), maxConnections: 5, patienceMs: 0 };
    const backend = await PostgresBackend.open(options);
    opened.connections.add(backend);
    return backend;
  },
  addressOf: async (dir) => (await databaseFor(dir)).url(migrator),
});
openEnginesWith((path) => {
  const known = current.engines.get(path);
  if (known !== undefined) return known;
  const engine = openEngine(current);
  if (path !== inMemory) current.engines.set(path, engine);
  return engine;
});

function databaseFor(dir: string): Promise<TestDatabase> {
  const database = forFile.databases.get(dir) ?? current.databases.get(dir) ?? current.borrow();
  current.databases.set(dir, database);
  return database;
}

/** A ledger of its own. Its database is opened on first use. */
function openEngine(opened: Opened): TestEngine {
  let opening: Promise<PostgresEngine> | null = null;
  let held: { close(): Promise<void> } | null = null;
  const open = async () => {
    const { database, giveBack } = await borrowDatabase();
    const pool = await PostgresDatabase.create({ url: database.url(roles.worker), maxConnections: 4 });
    held = {
      close: async () => {
        await pool.close();
        await giveBack();
      },
    };
    opened.connections.add(held);
    return new PostgresEngine(pool);
  };
  const ready = () => {
    opening ??= open();
    return opening;
  };
  return {
    read: async (script) => (await ready()).read(script),
    change: async (...args) => (await ready()).change(...args),
    changeEach: async (changes) => (await ready()).changeEach(changes),
    version: () => 0,
    mark: () => null,
    watch: () => () => undefined,
    // Tests name fences.
    fenceStep: () => 1,
    close: async () => {
      // Engines with the same path are one, which each of their users closes.
      if (held !== null && opened.connections.delete(held)) await held.close();
    },
  };
}

beforeEach(() => {
  current = new Opened();
});
afterEach(async () => {
  await current.close();
  current = forFile;
});
afterAll(async () => {
  await forFile.close();
  storeIn(null);
  openEnginesWith(null);
});
