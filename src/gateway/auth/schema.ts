import type { LedgerPart } from "../../core/migrate-part.ts";
import { migratePart } from "../../core/migrate-part.ts";
import type { Ledger } from "../../runs/ledger.ts";

/**
 * The part of `work.db` that is about tokens, with a version of its own among the facts. `beginning` is the first part
 * of a hash: rows are found by it, and compared by the rest in constant time. The secrets themselves are nowhere.
 */
export const tokenSteps: readonly (readonly string[])[] = [
  [
    `CREATE TABLE gateway_tokens (
       seq INTEGER PRIMARY KEY AUTOINCREMENT,
       token_id TEXT NOT NULL UNIQUE,
       beginning TEXT NOT NULL,
       hash TEXT NOT NULL UNIQUE,
       name TEXT NOT NULL,
       scopes TEXT NOT NULL,
       user TEXT,
       parent TEXT,
       created_at INTEGER NOT NULL,
       expires_at INTEGER,
       last_used_at INTEGER,
       revoked_at INTEGER
     ) STRICT`,
    "CREATE INDEX gateway_tokens_beginning ON gateway_tokens (beginning)",
    "CREATE INDEX gateway_tokens_parent ON gateway_tokens (parent) WHERE parent IS NOT NULL",
    "CREATE INDEX gateway_tokens_user ON gateway_tokens (user)",
    `CREATE TABLE gateway_codes (
       seq INTEGER PRIMARY KEY AUTOINCREMENT, beginning TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, parent TEXT,
       expires_at INTEGER NOT NULL) STRICT`,
    "CREATE INDEX gateway_codes_beginning ON gateway_codes (beginning)",
  ],
];

/** Those with hashes of secrets: a copy of the folder elsewhere has tokens of its own. */
export const tokenTables: readonly string[] = ["gateway_tokens", "gateway_codes"];

const fact = "schema.gateway";

/** For code that has to rebuild a database. */
export const tokenSchema = { fact, table: "gateway_tokens", version: tokenSteps.length };

export function migrateTokens(ledger: Ledger, steps: LedgerPart["steps"] = tokenSteps): void {
  migratePart(ledger, { fact, about: "tokens", steps });
}
