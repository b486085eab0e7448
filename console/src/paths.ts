import type { SkeinClient } from "skein/client";

/** Identifies the session that a page shows. */
export interface SessionPlace {
  readonly key: string;
  /** Set only for a token that covers all users. */
  readonly userId?: string;
}

type Query = Readonly<Record<string, string | undefined>>;

/**
 * An object that belongs to a user. If `userId` is absent, it belongs to the unnamed user or, in a URL, to the token's
 * user.
 */
interface Owned {
  readonly userId?: string | null | undefined;
}

/** Returns a row's user as a parameter, which is absent for the unnamed user. */
export function userParam({ userId }: Owned): { userId?: string } {
  return userId === undefined || userId === null ? {} : { userId };
}

/** Returns a row's session in the form used by calls and URLs. */
export function placeOf(
  row: Owned & ({ readonly key: string } | { readonly sessionKey: string }),
): SessionPlace {
  return { key: "sessionKey" in row ? row.sessionKey : row.key, ...userParam(row) };
}

/** Which users' rows a list requests: all users that the token covers, or one. An empty ID is the unnamed user. */
export function usersParam({ hello }: SkeinClient, userId?: string): { allUsers?: true; userId?: string } {
  if (userId === undefined) return hello.allUsers ? { allUsers: true } : {};
  return userId === "" ? {} : { userId };
}

/**
 * The owner, or an empty string for the unnamed user. With a token for one user, events and URLs do not name that user.
 */
export function ownerOf({ hello }: SkeinClient, { userId }: Owned): string {
  return userId ?? hello.userId ?? "";
}

/** Returns the session that a URL refers to. */
export function placeOfPath(path: string, query: URLSearchParams): SessionPlace | null {
  const [, encoded] = /^\/s\/([^/?]+)/.exec(path) ?? [];
  return encoded === undefined
    ? null
    : { key: decodeKey(encoded), ...userParam({ userId: query.get("user") }) };
}

/** Returns the key in a URL. A malformed key is kept as is. No session has it, and the page reports this. */
export function decodeKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** Returns the URL of a session's view. Half of a surrogate pair, which a URL cannot contain, is replaced. */
export function sessionPath(
  { key, userId }: SessionPlace,
  view: "" | "tree" | "context" | "family" = "",
  query: Query = {},
): string {
  const page = `/s/${encodeURIComponent(key.toWellFormed())}${view === "" ? "" : `/${view}`}`;
  return withQuery(page, { user: userId, ...query });
}

export type RunsPart = "runs" | "approvals" | "outbox";

/** Returns the URL of a part of the runs page. */
export function runsPath(tab: RunsPart, query: Query = {}): string {
  return withQuery("/runs", { tab: tab === "runs" ? undefined : tab, ...query });
}

/**
 * Returns the URL of the usage page. With a day, model, agent or user, the page shows the sessions that used those
 * tokens.
 */
export function usagePath(query: Query = {}): string {
  return withQuery("/usage", query);
}

export function searchPath(query: Query = {}): string {
  return withQuery("/search", query);
}

/**
 * Returns the URL of the access page. With `from` and `to`, the page explains whether one session is allowed to see the
 * other.
 */
export function accessPath(query: Query = {}): string {
  return withQuery("/access", query);
}

function withQuery(page: string, query: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, value);
  return params.size === 0 ? page : `${page}?${params.toString()}`;
}
