import { SkeinError } from "../../core/errors.ts";
import { userSegment } from "../../core/path-segment.ts";

/** A caller of the gateway, as identified by its token, and the rights that the token grants. */

export const tokenScopes = ["read", "write", "tools", "admin"] as const;

/** No scope includes another. For example, `admin` alone does not allow reading. */
export type TokenScope = (typeof tokenScopes)[number];

/**
 * Stands for all users where a user ID is expected. To reach the user whose ID is literally `*`, name that user in the
 * call.
 */
export const everyUser = "*";

/** A user ID, `null` for the unnamed user, or {@link everyUser}. */
export type TokenUser = string | null;

export interface Rights {
  readonly scopes: readonly TokenScope[];
  readonly user: TokenUser;
  /** In milliseconds since 1970, or `null` if the token never expires. */
  readonly expiresAt: number | null;
}

/** The identity and rights that a valid token grants. */
export interface Principal extends Rights {
  readonly tokenId: string;
  readonly name: string;
}

/** The token ID of a process that opens the folder directly. */
export const localTokenId = "local";

/** Whether the caller is a process with direct access to the folder. */
export function isLocal({ tokenId }: Pick<Principal, "tokenId">): boolean {
  return tokenId === localTokenId;
}

/** The rights that a method requires from its caller. */
export interface MethodRights {
  readonly scope: TokenScope;
  /** `true` if the method affects all users and therefore requires a token for every user. */
  readonly needsAll?: boolean;
}

export interface Denied {
  readonly allowed: false;
  readonly problem: string;
  readonly advice: string;
}

export type MayCall = { readonly allowed: true } | Denied;
export type CallScope = { readonly allowed: true; readonly userId: string | null } | Denied;

/** Whether the caller is allowed to see secrets and file paths. */
export function isAdmin({ scopes }: Pick<Rights, "scopes">): boolean {
  return scopes.includes("admin");
}

/** Whether the token is for every user. */
export function isForAll({ user }: Pick<Rights, "user">): boolean {
  return user === everyUser;
}

/** Whether a principal is allowed to call a method. {@link scopeFor} determines the user of the call. */
export function mayCall(rights: Rights, { scope, needsAll = false }: MethodRights): MayCall {
  if (!rights.scopes.includes(scope)) {
    return denied(`This token lacks the "${scope}" scope`, "Use a token that has it");
  }
  if (needsAll && !isForAll(rights)) {
    return denied("This call requires a token for all users", `Use a token whose user is "${everyUser}"`);
  }
  return { allowed: true };
}

/**
 * Returns the user of a call, which is the token's user. Only a token for every user can name a different user in the
 * call. If it does not name one, the call applies to the unnamed user.
 */
export function scopeFor(rights: Rights, named?: string | null): CallScope {
  const { user } = rights;
  if (isForAll(rights)) return { allowed: true, userId: named ?? null };
  if (named === undefined || named === user) return { allowed: true, userId: user };
  return denied("This token belongs to another user", "Omit the user, because the token determines it");
}

function denied(problem: string, advice: string): Denied {
  return { allowed: false, problem, advice };
}

/** The rights requested for a new token. A token can only create tokens with a subset of its own rights. */

export interface RequestedRights {
  readonly scopes: readonly TokenScope[];
  readonly user: TokenUser;
  /** Defaults to the expiry of the creating token, or to `null` if a local process creates it. */
  readonly expiresAt?: number | null;
}

/**
 * Validates the requested rights by themselves and against the creator's rights. `own` is `null` if a local process is
 * the creator.
 */
export function grantRights(asked: RequestedRights, own: Rights | null, now: number): Rights {
  const { scopes, user, expiresAt = own?.expiresAt ?? null } = asked;
  const problem = problemOf({ scopes, user, expiresAt }, now);
  if (problem !== null) {
    const advice = "Nothing was created. Correct the request and try again";
    throw new SkeinError("invalid_arguments", { problem: `The token cannot be created: ${problem}`, advice });
  }
  if (user !== null && user !== everyUser) userSegment(user);
  const granted = { scopes: tokenScopes.filter((scope) => scopes.includes(scope)), user, expiresAt };
  const excess = own === null ? null : findExcess(granted, own);
  if (excess !== null) {
    throw new SkeinError("forbidden", {
      problem: `A token can only create tokens whose rights do not exceed its own: ${excess}`,
      advice: "Nothing was created. Request fewer rights, or use a different token",
    });
  }
  return granted;
}

/** Explains how `asked` exceeds `own`, or returns `null` if it does not. */
export function findExcess(asked: Rights, own: Rights): string | null {
  const beyond = asked.scopes.filter((scope) => !own.scopes.includes(scope));
  if (beyond.length > 0) return `it lacks the scope ${beyond.join(", ")}`;
  if (!isForAll(own) && asked.user !== own.user) return "it belongs to another user";
  const isLonger = own.expiresAt !== null && (asked.expiresAt === null || asked.expiresAt > own.expiresAt);
  return isLonger ? "it expires earlier" : null;
}

function problemOf({ scopes, user, expiresAt }: Rights, now: number): string | null {
  if (scopes.length === 0) return "it has no scopes";
  const unknown = scopes.find((scope) => !tokenScopes.includes(scope));
  if (unknown !== undefined) return `there is no scope "${unknown}", only ${tokenScopes.join(", ")}`;
  if (user === everyUser && !scopes.includes("admin")) return "a token for all users needs the admin scope";
  if (expiresAt === null) return null;
  if (!Number.isSafeInteger(expiresAt)) return "its expiry is not a time in milliseconds";
  return expiresAt <= now ? "its expiry is in the past" : null;
}
