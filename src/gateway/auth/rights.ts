import { SkeinError } from "../../core/errors.ts";
import { userSegment } from "../../core/path-segment.ts";
import type { Rights, TokenScope, TokenUser } from "./principal.ts";
import { everyUser, isForAll, tokenScopes } from "./principal.ts";

/** The rights that a new token may be given. A token mints only a subset of itself. */

export interface AskedRights {
  readonly scopes: readonly TokenScope[];
  readonly user: TokenUser;
  /** Left out: as long as the token that mints it, or for ever. */
  readonly expiresAt?: number | null;
}

/** The rights as asked for, checked by themselves and against `own`; `null` for who has the folder itself. */
export function grant(asked: AskedRights, own: Rights | null, now: number): Rights {
  const { scopes, user, expiresAt = own?.expiresAt ?? null } = asked;
  const problem = problemOf({ scopes, user, expiresAt }, now);
  if (problem !== null) {
    const advice = "Nothing was made; correct it and ask again";
    throw new SkeinError("invalid_arguments", { problem: `No such token can be made: ${problem}`, advice });
  }
  if (user !== null && user !== everyUser) userSegment(user);
  const granted = { scopes: tokenScopes.filter((scope) => scopes.includes(scope)), user, expiresAt };
  const excess = own === null ? null : excessOf(granted, own);
  if (excess !== null) {
    throw new SkeinError("forbidden", {
      problem: `A token makes only tokens that may no more than itself: ${excess}`,
      advice: "Nothing was made; ask for less, or use another token",
    });
  }
  return granted;
}

/** What of `asked` goes beyond `own`; `null`: nothing. */
export function excessOf(asked: Rights, own: Rights): string | null {
  const beyond = asked.scopes.filter((scope) => !own.scopes.includes(scope));
  if (beyond.length > 0) return `it lacks the scope ${beyond.join(", ")}`;
  if (!isForAll(own) && asked.user !== own.user) return "it is for another user";
  const isLonger = own.expiresAt !== null && (asked.expiresAt === null || asked.expiresAt > own.expiresAt);
  return isLonger ? "it ends earlier" : null;
}

function problemOf({ scopes, user, expiresAt }: Rights, now: number): string | null {
  if (scopes.length === 0) return "it has no scope";
  const unknown = scopes.find((scope) => !tokenScopes.includes(scope));
  if (unknown !== undefined) return `there is no scope "${unknown}", only ${tokenScopes.join(", ")}`;
  if (user === everyUser && !scopes.includes("admin")) return "one for every user needs the scope admin";
  if (expiresAt === null) return null;
  if (!Number.isSafeInteger(expiresAt)) return "its end is no time in milliseconds";
  return expiresAt <= now ? "its end is over already" : null;
}
