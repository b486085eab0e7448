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

/** Whether a principal may call such a method at all; for whom, {@link scopeFor} says. */
export function mayCall({ scopes, user }: Rights, { scope, needsAll = false }: MethodRights): MayCall {
  if (!scopes.includes(scope)) {
    return denied(`This token lacks the scope "${scope}"`, "Use a token that has it");
  }
  if (needsAll && user !== everyUser) {
    return denied("This needs a token for every user", `Use a token whose user is "${everyUser}"`);
  }
  return { allowed: true };
}

/**
 * Whose sessions a call is about. That is the token's user, whatever the call says; only a token for every user may
 * name one, and without a name speaks for the unnamed user. `named`: as the call has it; `undefined`: it names nobody.
 */
export function scopeFor({ user }: Rights, named?: string | null): CallScope {
  if (user === everyUser) return { allowed: true, userId: named ?? null };
  if (named === undefined || named === user) return { allowed: true, userId: user };
  return denied("This token is another user's", "Leave the user out: it comes from the token");
}

function denied(problem: string, advice: string): Denied {
  return { allowed: false, problem, advice };
}
