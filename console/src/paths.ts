import type { SkeinClient } from "skein/client";

/** Which session a page is about. */
export interface SessionPlace {
  readonly key: string;
  /** Only for a token for all users. */
  readonly userId?: string;
}

type Query = Readonly<Record<string, string | undefined>>;

/** What belongs to a user. Without one it belongs to the unnamed user or, in an address, to the user of the token. */
interface Owned {
  readonly userId?: string | null | undefined;
}

/** The user of a row as a parameter: absent for the unnamed user. */
export function userParam({ userId }: Owned): { userId?: string } {
  return userId === undefined || userId === null ? {} : { userId };
}

/** The session of a row, as calls and addresses name it. */
export function placeOf(
  row: Owned & ({ readonly key: string } | { readonly sessionKey: string }),
): SessionPlace {
  return { key: "sessionKey" in row ? row.sessionKey : row.key, ...userParam(row) };
}

/** Whose rows a list asks for: those of every user the token is for, or of one. An empty ID is the unnamed user. */
export function usersParam({ hello }: SkeinClient, userId?: string): { allUsers?: true; userId?: string } {
  if (userId === undefined) return hello.allUsers ? { allUsers: true } : {};
  return userId === "" ? {} : { userId };
}

/** The owner; empty for the unnamed user. Events and addresses for a token of one user do not name that user. */
export function ownerOf({ hello }: SkeinClient, { userId }: Owned): string {
  return userId ?? hello.userId ?? "";
}

/** The session that an address is about. */
export function placeOfPath(path: string, query: URLSearchParams): SessionPlace | null {
  const [, encoded] = /^\/s\/([^/?]+)/.exec(path) ?? [];
  return encoded === undefined
    ? null
    : { key: decodeKey(encoded), ...userParam({ userId: query.get("user") }) };
}

/** The key in an address. A malformed one stays as it is: no session has it, and the page says so. */
export function decodeKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** The address of a view of a session. */
export function sessionPath(
  { key, userId }: SessionPlace,
  view: "" | "tree" | "context" | "family" = "",
  query: Query = {},
): string {
  const page = `/s/${encodeURIComponent(key)}${view === "" ? "" : `/${view}`}`;
  return withQuery(page, { user: userId, ...query });
}

export type RunsPart = "runs" | "approvals" | "outbox";

/** The address of a part of the page about runs. */
export function runsPath(tab: RunsPart, query: Query = {}): string {
  return withQuery("/runs", { tab: tab === "runs" ? undefined : tab, ...query });
}

/** The address of the usage page. With a day, model, agent or user: the sessions that used those tokens. */
export function usagePath(query: Query = {}): string {
  return withQuery("/usage", query);
}

export function searchPath(query: Query = {}): string {
  return withQuery("/search", query);
}

/** The address of the access page. With `from` and `to`, it explains whether one session may see another. */
export function accessPath(query: Query = {}): string {
  return withQuery("/access", query);
}

function withQuery(page: string, query: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, value);
  return params.size === 0 ? page : `${page}?${params.toString()}`;
}
