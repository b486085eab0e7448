import { hash as digest, randomBytes, timingSafeEqual } from "node:crypto";
import type { LedgerPart } from "../../core/migrate-part.ts";
import { migratePart } from "../../core/migrate-part.ts";
import type { Ledger } from "../../runs/contract.ts";
import type { Principal, TokenScope } from "./principal.ts";

/** A token without its secret. */
export interface TokenRecord extends Principal {
  /** The token that created this one, or `null` if a local process did. */
  readonly parent: string | null;
  readonly createdAt: number;
  /** Accurate to the minute. */
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
}

export type Row = Readonly<Record<string, unknown>>;

export function recordOf(row: Row): TokenRecord {
  return {
    tokenId: String(row.token_id),
    name: String(row.name),
    scopes: String(row.scopes).split(" ") as TokenScope[],
    user: textOf(row.user),
    parent: textOf(row.parent),
    createdAt: Number(row.created_at),
    expiresAt: timeOf(row.expires_at),
    lastUsedAt: timeOf(row.last_used_at),
    revokedAt: timeOf(row.revoked_at),
  };
}

/** Whether a token is neither revoked nor expired. */
export function isLive({ expiresAt, revokedAt }: TokenRecord, now: number): boolean {
  return revokedAt === null && (expiresAt === null || now < expiresAt);
}

export function principalOf({ tokenId, name, scopes, user, expiresAt }: TokenRecord): Principal {
  return { tokenId, name, scopes, user, expiresAt };
}

function textOf(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

function timeOf(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

/**
 * The token tables in `work.db`, with their own schema version. `beginning` is a prefix of the hash that selects
 * candidate rows, which are then compared in constant time. Secrets are not stored.
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

/** Tables that contain hashes of secrets and therefore must not be part of a copy of the folder. */
export const tokenTables: readonly string[] = ["gateway_tokens", "gateway_codes"];

const fact = "schema.gateway";

/** Used by code that rebuilds a database. */
export const tokenSchema = { fact, table: "gateway_tokens", version: tokenSteps.length };

export function migrateTokens(ledger: Ledger, steps: LedgerPart["steps"] = tokenSteps): void {
  migratePart(ledger, { fact, about: "tokens", steps });
}

/** A secret is a prefix followed by 32 random bytes. Only its hash is stored. */

export const tokenPrefix = "skein_";
export const codePrefix = "skein_code_";
const randomPart = /^[A-Za-z0-9_-]{43}$/;
const beginningLength = 8;

export type RandomSource = (count: number) => Uint8Array;
export const systemRandom: RandomSource = (count) => randomBytes(count);

/** A hash and its indexed prefix. */
export interface SecretHash {
  readonly beginning: string;
  readonly hash: string;
}

export function newSecret(prefix: string, random: RandomSource): string {
  return prefix + Buffer.from(random(32)).toString("base64url");
}

/** Whether a string has the format of a secret with this prefix. */
export function isSecret(prefix: string, text: unknown): text is string {
  return typeof text === "string" && text.startsWith(prefix) && randomPart.test(text.slice(prefix.length));
}

export function hashSecret(secret: string): SecretHash {
  const hash = digest("sha256", secret);
  return { beginning: hash.slice(0, beginningLength), hash };
}

/** Finds the row with this hash. The comparison takes constant time, even if there is no matching row. */
export function findByHash<Row extends { readonly hash: string }>(
  rows: readonly Row[],
  { hash }: SecretHash,
): Row | null {
  const wanted = Buffer.from(hash, "hex");
  const compared = rows.length === 0 ? [null] : rows;
  let found: Row | null = null;
  for (const row of compared) {
    const kept = row === null ? Buffer.alloc(wanted.length) : Buffer.from(row.hash, "hex");
    if (kept.length === wanted.length && timingSafeEqual(kept, wanted)) found = row;
  }
  return found;
}
