import { SkeinError } from "../../core/errors.ts";
import type { Script } from "../../core/script.ts";
import { changeRows, queryRow, queryRows } from "../../core/script.ts";
import type { Principal } from "./principal.ts";
import { everyUser } from "./principal.ts";
import type { SecretHash, TokenRecord } from "./token-table.ts";
import { recordOf } from "./token-table.ts";

/** SQL statements that read and change tokens as part of a transaction. */

/** A token with the hash of its secret. */
export interface StoredToken {
  readonly hash: string;
  readonly token: TokenRecord;
}

const columns =
  "token_id, hash, name, scopes, user, parent, created_at, expires_at, last_used_at, revoked_at";
const isValid = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)";

export function* readToken(tokenId: string): Script<TokenRecord | null> {
  const row = yield* queryRow(`SELECT ${columns} FROM gateway_tokens WHERE token_id = ?`, tokenId);
  return row === undefined ? null : recordOf(row);
}

/** Like `readToken`, but throws `not_found` if there is no such token. */
export function* requireToken(tokenId: string): Script<TokenRecord> {
  const token = yield* readToken(tokenId);
  if (token !== null) return token;
  const advice = "List the tokens to see their IDs";
  throw new SkeinError("not_found", { what: "Token", name: tokenId, advice });
}

/** Returns tokens by ID. IDs without a token are omitted. */
export function* readTokens(tokenIds: readonly string[]): Script<ReadonlyMap<string, TokenRecord>> {
  const sql = `SELECT ${columns} FROM gateway_tokens WHERE token_id IN (SELECT value FROM json_each(?))`;
  const rows = yield* queryRows(sql, JSON.stringify(tokenIds));
  return new Map(rows.map((row) => [String(row.token_id), recordOf(row)]));
}

/** Returns all tokens in order of creation. */
export function* readAllTokens(): Script<TokenRecord[]> {
  return (yield* queryRows(`SELECT ${columns} FROM gateway_tokens ORDER BY seq`)).map(recordOf);
}

/** Returns the tokens whose hash has this prefix, or `null` if there are none. */
export function* readSimilarTokens(beginning: string): Script<StoredToken[] | null> {
  const rows = yield* queryRows(`SELECT ${columns} FROM gateway_tokens WHERE beginning = ?`, beginning);
  if (rows.length === 0) return null;
  return rows.map((row) => ({ hash: String(row.hash), token: recordOf(row) }));
}

export function* insertToken(
  { beginning, hash }: SecretHash,
  token: Principal & Pick<TokenRecord, "parent" | "createdAt">,
): Script<void> {
  yield* changeRows(
    `INSERT INTO gateway_tokens (token_id, beginning, hash, name, scopes, user, parent, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    token.tokenId,
    beginning,
    hash,
    token.name,
    token.scopes.join(" "),
    token.user,
    token.parent,
    token.createdAt,
    token.expiresAt,
  );
}

/** Revokes a token and all tokens created from it. Returns the IDs of those that were not revoked before. */
export function* revokeTree(tokenId: string, at: number): Script<string[]> {
  const ids = yield* findUnrevoked(tokenId);
  for (const id of ids) yield* writeRevocation(id, at);
  return ids;
}

/**
 * Returns the IDs of a token and of all tokens created from it, at any depth, except those that are already revoked.
 */
export function* findUnrevoked(tokenId: string): Script<string[]> {
  yield* requireToken(tokenId);
  const rows = yield* queryRows(
    `WITH RECURSIVE minted (id) AS (
       SELECT token_id FROM gateway_tokens WHERE token_id = ?
       UNION SELECT token_id FROM gateway_tokens JOIN minted ON parent = id)
     SELECT token_id FROM gateway_tokens JOIN minted ON token_id = id WHERE revoked_at IS NULL ORDER BY seq`,
    tokenId,
  );
  return rows.map((row) => String(row.token_id));
}

export function* writeRevocation(tokenId: string, at: number): Script<void> {
  const sql = "UPDATE gateway_tokens SET revoked_at = ? WHERE token_id = ? AND revoked_at IS NULL";
  yield* changeRows(sql, at, tokenId);
}

/** Records a use unless one was recorded after `before`, so that concurrent requests cause only one write. */
export function* writeLastUse(tokenId: string, at: number, before: number): Script<void> {
  const sql = `UPDATE gateway_tokens SET last_used_at = ?
    WHERE token_id = ? AND (last_used_at IS NULL OR last_used_at <= ?)`;
  yield* changeRows(sql, at, tokenId, before);
}

export function* deleteToken(tokenId: string): Script<void> {
  yield* changeRows("DELETE FROM gateway_tokens WHERE token_id = ?", tokenId);
}

/** Returns the number of deleted tokens. */
export function* deleteExpired(before: number): Script<number> {
  return yield* changeRows("DELETE FROM gateway_tokens WHERE expires_at < ?", before);
}

/** Deletes a user's tokens and their link codes. Returns the IDs of the tokens. */
export function* deleteUserTokens(userId: string): Script<string[]> {
  const rows = yield* queryRows("SELECT token_id FROM gateway_tokens WHERE user = ? ORDER BY seq", userId);
  const ids = rows.map((row) => String(row.token_id));
  for (const id of ids) {
    yield* changeRows("DELETE FROM gateway_codes WHERE parent = ?", id);
    yield* deleteToken(id);
  }
  return ids;
}

/** Counts the valid tokens other than the given one. */
export function* countOtherTokens(tokenId: string, now: number): Script<number> {
  const sql = `SELECT count(*) AS count FROM gateway_tokens WHERE token_id <> ? AND ${isValid}`;
  return Number((yield* queryRow(sql, tokenId, now))?.count);
}

/** Counts the valid tokens of each user whose ID follows `after` in byte order. `null` is the unnamed user. */
export function* countTokensByUser(
  after: string | null | undefined,
  limit: number,
  now: number,
): Script<{ readonly userId: string | null; readonly tokens: number }[]> {
  const from = after === undefined ? "" : "AND coalesce(user, '') > ?";
  const rows = yield* queryRows(
    `SELECT coalesce(user, '') AS owner, count(*) AS tokens FROM gateway_tokens
     WHERE user IS DISTINCT FROM ? AND ${isValid} ${from} GROUP BY owner ORDER BY owner LIMIT ?`,
    everyUser,
    now,
    ...(after === undefined ? [] : [after ?? ""]),
    limit,
  );
  return rows.map(({ owner, tokens }) => ({
    userId: owner === "" ? null : String(owner),
    tokens: Number(tokens),
  }));
}
