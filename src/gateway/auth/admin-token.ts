import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import { everyUser, tokenScopes } from "./principal.ts";
import { createPrivate, makePrivate, readPrivate } from "./private-file.ts";
import { isLive, isSecret, tokenPrefix } from "./token-table.ts";
import type { TokenRequest, Tokens } from "./tokens.ts";

/** The admin token of a root folder is in its file `token`, for commands of users who may read the folder. */

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
 * Returns the admin token, and creates it if there is none. Processes that start at the same time get the same one. An
 * existing file is never overwritten: it must contain a valid token.
 */
export function ensureAdminToken(root: string, tokens: Tokens): AdminToken {
  const path = tokenPath(root);
  const there = readToken(path, tokens);
  if (there !== null) return there;
  // The row is written before the file, so that no client reads a token that is not known yet.
  const { secret, token } = tokens.create(adminRequest, null);
  if (writeToken(path, secret, tokens, token.tokenId)) {
    return { secret, tokenId: token.tokenId, isNew: true };
  }
  const theirs = readToken(path, tokens);
  if (theirs === null) throw unusable(path, "it is not a file of this user");
  return theirs;
}

/** The secret in the file; `null` if there is none. */
export function readTokenFile(root: string): string | null {
  const text = readPrivate(tokenPath(root))?.text.trim();
  return isSecret(tokenPrefix, text) ? text : null;
}

/** Returns `false` if another process took it first. The unused token is then dropped. */
function writeToken(path: string, secret: string, tokens: Tokens, tokenId: string): boolean {
  let isWritten = false;
  try {
    // Exclusive, for disks on which the file does not appear together with its contents.
    isWritten = tokens.ledger.exclusively(() => createPrivate(path, `${secret}\n`, randomUUID()));
    return isWritten;
  } catch (error) {
    const advice = "No token was created; free some space on the disk, or check the permissions";
    const problem = (error as Error).message;
    throw new SkeinError("write_failed", { file: path, problem, advice }, { cause: error });
  } finally {
    if (!isWritten) tokens.drop(tokenId);
  }
}

function readToken(path: string, tokens: Tokens): AdminToken | null {
  const file = tokens.ledger.exclusively(() => readPrivate(path));
  if (file === null) return null;
  if (file.isExposed) throw unusable(path, "other users may have written it");
  makePrivate(path);
  const secret = file.text.trim();
  if (!isSecret(tokenPrefix, secret)) throw unusable(path, "it contains no token");
  const known = tokens.find(secret) ?? adoptWhereNoneIsKnown(secret, tokens);
  if (known === null) throw unusable(path, "its token is unknown");
  if (!isLive(known, tokens.clock.now())) throw unusable(path, "its token was revoked or has expired");
  return { secret, tokenId: known.tokenId, isNew: false };
}

/** After `work.db` was lost. If other tokens are known, an unknown one may have been dropped on purpose. */
function adoptWhereNoneIsKnown(secret: string, tokens: Tokens): ReturnType<Tokens["find"]> {
  return tokens.ledger.exclusively(() => {
    const known = tokens.find(secret);
    return known === null && tokens.list().length === 0 ? tokens.adopt(secret, adminRequest, null) : known;
  });
}

function unusable(path: string, problem: string): SkeinError {
  const advice = "Remove the file and start again: a new token is created";
  return new SkeinError("unreadable_file", { file: path, problem, advice });
}
