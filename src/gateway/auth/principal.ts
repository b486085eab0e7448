import { SkeinError } from "../../core/errors.ts";
import { userSegment } from "../../core/path-segment.ts";

/** Who asks a gateway, as its token says, and what that allows. Pure: the token itself is checked elsewhere. */

export const tokenScopes = ["read", "write", "tools", "admin"] as const;

/** What a token is for. No scope holds another one: `admin` alone reads nothing. */
export type TokenScope = (typeof tokenScopes)[number];

/** In the place of a user id: every user. A user of that very name is reached by naming it in a call. */
export const everyUser = "*";

/** A user id, `null` for the unnamed user, or {@link everyUser}. */
export type TokenUser = string | null;

export interface Rights {
  readonly scopes: readonly TokenScope[];
  readonly user: TokenUser;
  /** In milliseconds since 1970, and from then on it is over; `null`: never. */
  readonly expiresAt: number | null;
}

/** Whoever showed a valid token. */
export interface Principal extends Rights {
  readonly tokenId: string;
  readonly name: string;
}

/** In the place of a token's id: who has the folder itself, and so no token. */
export const localTokenId = "local";

/** Has the folder itself, on whoever's behalf. */
export function isLocal({ tokenId }: Pick<Principal, "tokenId">): boolean {
  return tokenId === localTokenId;
}

/** What a method asks of its caller. */
export interface MethodRights {
  readonly scope: TokenScope;
  /** It is about all users at once, so that only a token for every user may call it. */
  readonly needsAll?: boolean;
}

export interface Denied {
  readonly allowed: false;
  readonly problem: string;
  readonly advice: string;
}

export type MayCall = { readonly allowed: true } | Denied;
export type CallScope = { readonly allowed: true; readonly userId: string | null } | Denied;

/** Sees secrets, and paths of this machine. */
export function isAdmin({ scopes }: Pick<Rights, "scopes">): boolean {
  return scopes.includes("admin");
}

/** Speaks for every user. */
export function isForAll({ user }: Pick<Rights, "user">): boolean {
  return user === everyUser;
}

/** Whether a principal may call such a method at all; for whom, {@link scopeFor} says. */
export function mayCall(rights: Rights, { scope, needsAll = false }: MethodRights): MayCall {
  if (!rights.scopes.includes(scope)) {
    return denied(`This token lacks the scope "${scope}"`, "Use a token that has it");
  }
  if (needsAll && !isForAll(rights)) {
    return denied("This needs a token for every user", `Use a token whose user is "${everyUser}"`);
  }
  return { allowed: true };
}

/**
 * Whose sessions a call is about. That is the token's user, whatever the call says; only a token for every user may
 * name one, and without a name speaks for the unnamed user. `named`: as the call has it; `undefined`: it names nobody.
 */
export function scopeFor(rights: Rights, named?: string | null): CallScope {
  const { user } = rights;
  if (isForAll(rights)) return { allowed: true, userId: named ?? null };
  if (named === undefined || named === user) return { allowed: true, userId: user };
  return denied("This token is another user's", "Leave the user out: it comes from the token");
}

function denied(problem: string, advice: string): Denied {
  return { allowed: false, problem, advice };
}

/** The rights that a new token may be given. A token mints only a subset of itself. */

export interface RequestedRights {
  readonly scopes: readonly TokenScope[];
  readonly user: TokenUser;
  /** Left out: as long as the token that mints it, or for ever. */
  readonly expiresAt?: number | null;
}

/** The rights as asked for, checked by themselves and against `own`; `null` for who has the folder itself. */
export function grantRights(asked: RequestedRights, own: Rights | null, now: number): Rights {
  const { scopes, user, expiresAt = own?.expiresAt ?? null } = asked;
  const problem = problemOf({ scopes, user, expiresAt }, now);
  if (problem !== null) {
    const advice = "Nothing was made; correct it and ask again";
    throw new SkeinError("invalid_arguments", { problem: `No such token can be made: ${problem}`, advice });
  }
  if (user !== null && user !== everyUser) userSegment(user);
  const granted = { scopes: tokenScopes.filter((scope) => scopes.includes(scope)), user, expiresAt };
  const excess = own === null ? null : findExcess(granted, own);
  if (excess !== null) {
    throw new SkeinError("forbidden", {
      problem: `A token makes only tokens that may no more than itself: ${excess}`,
      advice: "Nothing was made; ask for less, or use another token",
    });
  }
  return granted;
}

/** What of `asked` goes beyond `own`; `null`: nothing. */
export function findExcess(asked: Rights, own: Rights): string | null {
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
