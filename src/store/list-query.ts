import type { Entry } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { readKey } from "../core/keys.ts";
import type {
  EntryPage,
  EntryRange,
  ListedSession,
  Scope,
  SessionPage,
  SessionQuery,
  SessionReach,
  SessionRecord,
  SessionSort,
} from "./contract.ts";

/** Filtering, sorting and pagination of lists. Used by every store. */

/** A position in the default order, which is by time and then by uid, newest first. */
interface ListPlace {
  readonly updatedAt: number;
  readonly uid: string;
}

/** A position in a list with any sort order. */
export interface SortedPlace {
  readonly value: number | string;
  readonly uid: string;
}

/** The number of characters of a name that sorting considers. The limit keeps cursors short. */
const sortedCharacters = 100;

/** Returns the value that a session is sorted by. Ties are broken by uid. */
export function sortValue(session: ListedSession, sort: SessionSort = "updated"): number | string {
  const { updatedAt, createdAt, digest, meta, name, key } = session;
  switch (sort) {
    case "updated":
      return updatedAt;
    case "created":
      return createdAt;
    case "tokens":
      return digest.totalTokens;
    case "cost":
      return digest.costUsd === null ? -1 : Math.trunc(digest.costUsd * 1_000_000);
    case "name": {
      const title = meta.displayName ?? name ?? meta.label ?? key;
      const start = Array.from(title.slice(0, 2 * sortedCharacters)).slice(0, sortedCharacters);
      return start.join("").replace(/[A-Z]/g, (letter) => letter.toLowerCase());
    }
  }
}

/** The column that contains `sortValue` in every store with an index, and its direction. */
export const sortColumns: Readonly<
  Record<SessionSort, { readonly column: string; readonly isRising: boolean }>
> = {
  updated: { column: "updated_at", isRising: false },
  created: { column: "created_at", isRising: false },
  tokens: { column: "tokens", isRising: false },
  cost: { column: "cost", isRising: false },
  name: { column: "sort_name", isRising: true },
};

/** Returns the sessions after the cursor, in the query's order. */
export function sortSessions(
  found: readonly ListedSession[],
  { sort = "updated", cursor }: SessionQuery,
): ListedSession[] {
  const place = decodeCursor(cursor, sort);
  const placed = found.map((session) => ({ session, value: sortValue(session, sort), uid: session.uid }));
  return placed
    .filter((each) => place === null || comparePlaces(each, place) > 0)
    .sort(comparePlaces)
    .map(({ session }) => session);
}

/** Sorts numbers in descending order and names by code point. Ties are broken by uid. */
function comparePlaces(a: SortedPlace, b: SortedPlace): number {
  if (typeof a.value === "string" || typeof b.value === "string") {
    const order = Buffer.compare(Buffer.from(String(a.value)), Buffer.from(String(b.value)));
    return order === 0 ? compareUids(a, b) : order;
  }
  return a.value === b.value ? compareUids(a, b) : b.value - a.value;
}

function compareUids(a: { readonly uid: string }, b: { readonly uid: string }): number {
  return a.uid === b.uid ? 0 : a.uid > b.uid ? -1 : 1;
}

/** Builds a page. If there are more sessions, `found` must contain one more than `limit`. */
export function listPage(
  found: readonly ListedSession[],
  limit: number,
  behind: number,
  sort?: SessionSort,
): SessionPage {
  const last = found[limit - 1];
  const nextCursor = found.length > limit && last !== undefined ? encodeCursor(last, sort) : null;
  return { sessions: found.slice(0, limit), nextCursor, behind };
}

function encodeCursor(session: ListedSession, sort: SessionSort = "updated"): string {
  const value = sortValue(session, sort);
  if (sort === "updated") return `${value}.${session.uid}`;
  return `${sort}.${Buffer.from(String(value)).toString("base64url")}.${session.uid}`;
}

export function decodeCursor(cursor: string | undefined, sort: SessionSort = "updated"): SortedPlace | null {
  if (cursor === undefined) return null;
  const [, sorted = "updated", text, uid] = /^(?:([a-z]+)\.)?([\w-]*)\.([\w-]+)$/.exec(cursor) ?? [];
  const value = sorted === "updated" ? text : Buffer.from(text ?? "", "base64url").toString();
  const isNumber = sort !== "name";
  if (
    value === undefined ||
    uid === undefined ||
    sorted !== sort ||
    (isNumber && !/^-?\d{1,16}$/.test(value))
  ) {
    throw new SkeinError("invalid_arguments", {
      problem: `The cursor "${cursor}" is not valid`,
      advice: "Use nextCursor from the previous page with the same sort, or omit it",
    });
  }
  return { value: isNumber ? Number(value) : value, uid };
}

/** Returns a negative number if `a` comes first. */
export function compareInList(a: ListPlace, b: ListPlace): number {
  if (a.updatedAt !== b.updatedAt) return b.updatedAt - a.updatedAt;
  return compareUids(a, b);
}

/**
 * Returns a session's channel, from its metadata or its key. The `channels` filter of a query is compared with this
 * value.
 *
 * @example
 * ```ts
 * import { channelOf } from "skein/store";
 * channelOf({ key: "agent:main:matrix:user:ann", meta: {} }); // "matrix"
 * ```
 */
export function channelOf({ key, meta }: Pick<SessionRecord, "key" | "meta">): string {
  const parsed = readKey(key);
  if ("problem" in parsed) return "unknown";
  if (parsed.form === "cron" || parsed.form === "hook" || parsed.form === "node") return "internal";
  const named = parsed.form === "direct" || parsed.form === "group" ? parsed.channel : undefined;
  const last = typeof meta.lastChannel === "string" ? meta.lastChannel : undefined;
  return meta.channel ?? meta.delivery?.channel ?? last ?? named ?? "unknown";
}

export function matchesQuery(record: SessionRecord, query: SessionQuery): boolean {
  const { meta, kind, key } = record;
  if (key === "global" && query.includeGlobal !== true) return false;
  if (key === "unknown" && query.includeUnknown !== true) return false;
  if ((meta.archived === true) !== (query.archived === true)) return false;
  if (query.kinds !== undefined && query.kinds.length > 0 && !query.kinds.includes(kind)) return false;
  if (query.uids?.includes(record.uid) === false) return false;
  if (query.channels?.includes(channelOf(record)) === false) return false;
  if (query.label !== undefined && meta.label !== query.label) return false;
  if (query.activeSince !== undefined && record.updatedAt < query.activeSince) return false;
  if (query.spawnedBy !== undefined && !isSpawnedBy(meta, query.spawnedBy)) return false;
  if (query.forkedFrom?.includes(meta.forkedFrom?.sessionId ?? "") === false) return false;
  return query.text === undefined || namesOf(record).includes(query.text.toLowerCase());
}

function isSpawnedBy({ spawnedBy }: SessionRecord["meta"], keys: string | readonly string[]): boolean {
  return typeof keys === "string" ? spawnedBy === keys : spawnedBy !== undefined && keys.includes(spawnedBy);
}

/** Returns the text that `query.text` is matched against, in lowercase. */
export function namesOf({ key, sessionId, name, meta }: SessionRecord): string {
  return [key, sessionId, name, meta.label, meta.displayName]
    .filter((each) => each !== undefined && each !== null)
    .join("\n")
    .toLowerCase();
}

type Kin = Pick<SessionRecord, "key" | "agentId" | "meta">;

/**
 * Whether a session is within reach. `kin` must contain all of the user's sessions for all agents, including archived
 * ones.
 */
export function reachFilter(
  reach: SessionReach | undefined,
  kin: Iterable<Kin>,
): (session: Pick<SessionRecord, "key" | "agentId">) => boolean {
  if (reach === undefined || reach.agentIds === "all") return () => true;
  const { treeOf, agentIds } = reach;
  const tree =
    treeOf === null
      ? new Set<string>()
      : reach.descendants === false
        ? new Set([treeOf])
        : treeFrom(treeOf, kin);
  return ({ key, agentId }) => tree.has(key) || agentIds.includes(agentId);
}

/** Widens the scope to the whole user because descendants can belong to agents outside the scope. */
export function userScope({ userId }: Scope): Scope {
  return userId === undefined ? {} : { userId };
}

/** Returns a key and the keys of its descendants. Terminates even if the lineage is circular. */
function treeFrom(key: string, kin: Iterable<Kin>): Set<string> {
  const children = Map.groupBy(kin, ({ meta }) => meta.spawnedBy);
  const tree = new Set([key]);
  for (const parent of tree) for (const child of children.get(parent) ?? []) tree.add(child.key);
  return tree;
}

/**
 * Returns a page of entries. If `after` is set, the page contains the oldest entries after it. Otherwise, it contains
 * the newest entries.
 */
export function pageOf(entries: readonly Entry[], leafId: string | null, range: EntryRange): EntryPage {
  const limit = entryLimit(range.limit);
  const from = range.after === undefined ? 0 : placeOf(entries, range.after) + 1;
  const to = range.before === undefined ? entries.length : placeOf(entries, range.before);
  const end = range.after === undefined ? to : Math.min(to, from + limit);
  const start = range.after === undefined ? Math.max(from, to - limit) : from;
  const page = entries.slice(start, Math.max(start, end));
  return {
    entries: page,
    hasEarlier: start > 0 && page.length > 0,
    hasLater: end < entries.length && page.length > 0,
    leafId,
  };
}

function placeOf(entries: readonly Entry[], id: string): number {
  const place = entries.findIndex((entry) => entry.id === id);
  return place === -1 ? noSuchEntry(id) : place;
}

export function noSuchEntry(id: string): never {
  const advice = "Use the ID of an entry in this session";
  throw new SkeinError("not_found", { what: "Entry", name: id, advice });
}

/** Limits a page to a number of bytes, counted from the requested end. Keeps at least one item. */
export function withinBytes<Item>(
  items: readonly Item[],
  isForward: boolean,
  bytes: number | undefined,
  sizeOf: (item: Item) => number,
): readonly Item[] {
  if (bytes === undefined) return items;
  let [count, size] = [0, 0];
  for (const item of isForward ? items : items.toReversed()) {
    size += sizeOf(item);
    if (size > bytes && count > 0) break;
    count += 1;
  }
  return isForward ? items.slice(0, count) : items.slice(items.length - count);
}

/** Limits above the maximum are reduced to the maximum. */

export function sessionLimit(limit: number | undefined): number {
  return within(limit ?? 100, 1000);
}

export function entryLimit(limit: number): number {
  return within(limit, 1000);
}

export function hitLimit(limit: number | undefined): number {
  return within(limit ?? 10, 100);
}

function within(limit: number, most: number): number {
  if (Number.isInteger(limit) && limit >= 1) return Math.min(limit, most);
  throw new SkeinError("invalid_arguments", {
    problem: `The limit ${limit} is not a positive integer`,
    advice: `Use a number from 1 to ${most}`,
  });
}
