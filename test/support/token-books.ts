import { Tokens } from "../../src/gateway/auth/tokens.ts";
import { Database, inMemory } from "../../src/store/files/database.ts";

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

  constructor(path: string = inMemory) {
    this.db = openBooks(path);
    this.tokens = new Tokens({ ledger: this.db, clock: { now: () => this.now } });
  }
}
