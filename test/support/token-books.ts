import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "vitest";
import type { ScriptEngine } from "../../src/core/script.ts";
import { Tokens } from "../../src/gateway/auth/tokens.ts";
import { Database, inMemory } from "../../src/store/files/database.ts";
import { PostgresDatabase } from "../../src/store/postgres/database.ts";
import { PostgresEngine } from "../../src/store/postgres/ledger-engine.ts";
import { SqliteEngine } from "../../src/store/sqlite-engine.ts";
import { postgresFor, roles } from "./postgres.ts";

const facts = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID";
const pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;";

export function openBooks(path: string = inMemory): Database {
  return new Database(path, path === inMemory ? "" : pragmas, [facts]);
}

/** Tokens with a clock that the test controls. */
export class TokenBooks {
  now = 1_000_000;
  readonly db: Database;
  readonly tokens: Tokens;

  /** `engine` replaces the database. */
  constructor(path: string = inMemory, engine: ScriptEngine | null = null) {
    this.db = openBooks(path);
    const work =
      engine === null ? { engine: new SqliteEngine(this.db), ledger: this.db } : { engine, ledger: null };
    this.tokens = new Tokens(work, { clock: { now: () => this.now } });
  }
}

/** A database of tokens that several processes share. */
export interface TokenPlace {
  readonly engine: ScriptEngine;
  /** Opens the tokens as another process would. */
  open(): Promise<TokenBooks>;
  close(): Promise<void>;
}

export const tokenPlaces = ["files", "postgres"] as const;

/** Skips the test if there is no PostgreSQL. */
export function openTokenPlace(
  kind: (typeof tokenPlaces)[number],
  context: TestContext,
): Promise<TokenPlace> {
  return kind === "files" ? openFilePlace() : openPostgresPlace(context);
}

async function openFilePlace(): Promise<TokenPlace> {
  const folder = mkdtempSync(join(tmpdir(), "skein-tokens-"));
  const path = join(folder, "work.db");
  const opened = [new TokenBooks(path)];
  return {
    engine: new SqliteEngine((opened[0] as TokenBooks).db),
    open: async () => {
      const books = new TokenBooks(path);
      opened.push(books);
      return books;
    },
    close: async () => {
      for (const { db } of opened) db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function openPostgresPlace(context: TestContext): Promise<TokenPlace> {
  const database = await (await postgresFor(context)).createDatabase();
  const pools: PostgresDatabase[] = [];
  const openEngine = async () => {
    const pool = await PostgresDatabase.create({ url: database.url(roles.worker), maxConnections: 4 });
    pools.push(pool);
    return new PostgresEngine(pool);
  };
  return {
    engine: await openEngine(),
    open: async () => new TokenBooks(inMemory, await openEngine()),
    close: async () => {
      for (const pool of pools) await pool.close();
      await database.drop();
    },
  };
}
