import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import { everyUser, tokenScopes } from "./principal.ts";
import { createPrivate, makePrivate, readPrivate } from "./private-file.ts";
import { readAllTokens } from "./token-scripts.ts";
import type { TokenRecord } from "./token-table.ts";
import { isLive, isSecret, tokenPrefix } from "./token-table.ts";
import type { TokenRequest, Tokens } from "./tokens.ts";

/** A root folder's admin token. It is stored in the folder's `token` file, where CLI commands read it. */

export interface AdminToken {
  readonly secret: string;
  readonly tokenId: string;
  readonly isNew: boolean;
}

export const adminRequest: TokenRequest = { name: "admin", scopes: tokenScopes, user: everyUser };

export function tokenPath(root: string): string {
  return join(root, "token");
}

/**
 * Returns the admin token, creating it if there is none. Processes that start at the same time get the same token. An
 * existing file must contain a valid token and is never overwritten.
 */
export async function ensureAdminToken(root: string, tokens: Tokens): Promise<AdminToken> {
  const path = tokenPath(root);
  const there = await readToken(path, tokens);
  if (there !== null) return there;
  // The row is written before the file so that no client reads a token that is not in the database yet.
  const { secret, token } = await tokens.create(adminRequest, null);
  if (await writeToken(path, secret, tokens, token.tokenId)) {
    return { secret, tokenId: token.tokenId, isNew: true };
  }
  const theirs = await readToken(path, tokens);
  if (theirs === null) throw unusable(path, "it does not belong to this user");
  return theirs;
}

/** Returns the secret in the file, or `null` if there is no file. */
export function readTokenFile(root: string): string | null {
  const text = readPrivate(tokenPath(root))?.text.trim();
  return isSecret(tokenPrefix, text) ? text : null;
}

/** Returns `false` if another process created the file first, in which case the unused token is deleted. */
async function writeToken(path: string, secret: string, tokens: Tokens, tokenId: string): Promise<boolean> {
  let isWritten = false;
  try {
    // If the database is elsewhere, the folder might not exist yet.
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    isWritten = withFileLock(tokens, () => createPrivate(path, `${secret}\n`, randomUUID()));
    return isWritten;
  } catch (error) {
    const advice = "No token was created. Free up some disk space, or check the permissions";
    const problem = (error as Error).message;
    throw new SkeinError("write_failed", { file: path, problem, advice }, { cause: error });
  } finally {
    if (!isWritten) await tokens.drop(tokenId);
  }
}

/**
 * Runs `act` while holding the lock of the folder's database, because on some file systems a new file can be visible
 * before its contents. If the database is outside the folder, runs `act` without a lock.
 */
function withFileLock<T>({ ledger }: Tokens, act: () => T): T {
  return ledger === null ? act() : ledger.exclusively(act);
}

async function readToken(path: string, tokens: Tokens): Promise<AdminToken | null> {
  const file = withFileLock(tokens, () => readPrivate(path));
  if (file === null) return null;
  if (file.isExposed) throw unusable(path, "other users might have written it");
  makePrivate(path);
  const secret = file.text.trim();
  if (!isSecret(tokenPrefix, secret)) throw unusable(path, "it contains no token");
  const known = (await tokens.find(secret)) ?? (await adoptWhereNoneIsKnown(secret, tokens));
  if (known === null) throw unusable(path, "its token is unknown", otherStoreAdvice);
  if (!isLive(known, tokens.clock.now())) throw unusable(path, "its token was revoked or has expired");
  return { secret, tokenId: known.tokenId, isNew: false };
}

/**
 * Restores the token after the database has been lost. If the database has other tokens, an unknown token might have
 * been removed on purpose, so it is not restored.
 */
function adoptWhereNoneIsKnown(secret: string, tokens: Tokens): Promise<TokenRecord | null> {
  return tokens.change(function* () {
    const known = yield* tokens.findWithin(secret);
    if (known !== null || (yield* readAllTokens()).length > 0) return known;
    return yield* tokens.adoptWithin(secret, adminRequest, null);
  });
}

const otherStoreAdvice =
  "If the folder was used with another store, use that store, or choose another folder with --dir. Otherwise remove the file and start again to create a new token";

function unusable(
  path: string,
  problem: string,
  advice = "Remove the file and start again to create a new token",
): SkeinError {
  return new SkeinError("unreadable_file", { file: path, problem, advice });
}
