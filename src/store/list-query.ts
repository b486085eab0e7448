import type { Entry } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import type {
  EntryPage,
  EntryRange,
  ListedSession,
  Scope,
  SessionPage,
  SessionQuery,
  SessionReach,
  SessionRecord,
} from "./contract.ts";

/** Filters, order and pages of lists. Used by every store. */

/** A position in a list, which is sorted by time and then by uid, newest first. */
export interface ListPlace {
  readonly updatedAt: number;
  readonly uid: string;
}

/** Builds a page. `found` has one more session than `limit` if there are more. */
export function listPage(found: readonly ListedSession[], limit: number, behind: number): SessionPage {
  const last = found[limit - 1];
  const nextCursor = found.length > limit && last !== undefined ? encodeCursor(last) : null;
  return { sessions: found.slice(0, limit), nextCursor, behind };
}

function encodeCursor({ updatedAt, uid }: ListPlace): string {
  return `${updatedAt}.${uid}`;
}

export function decodeCursor(cursor: string | undefined): ListPlace | null {
  if (cursor === undefined) return null;
  const [, updatedAt, uid] = /^(\d{1,16})\.([\w-]+)$/.exec(cursor) ?? [];
  if (updatedAt === undefined || uid === undefined) {
    throw new SkeinError("invalid_arguments", {
      problem: `The cursor "${cursor}" is not valid`,
      advice: "Use nextCursor of the previous page, or omit it",
    });
  }
  return { updatedAt: Number(updatedAt), uid };
}

/** Negative: `a` comes first. */
export function compareInList(a: ListPlace, b: ListPlace): number {
  if (a.updatedAt !== b.updatedAt) return b.updatedAt - a.updatedAt;
  return a.uid === b.uid ? 0 : a.uid > b.uid ? -1 : 1;
}

export function matchesQuery(record: SessionRecord, query: SessionQuery): boolean {
  const { meta, kind, key } = record;
  if (key === "global" && query.includeGlobal !== true) return false;
  if (key === "unknown" && query.includeUnknown !== true) return false;
  if ((meta.archived === true) !== (query.archived === true)) return false;
  if (query.kinds !== undefined && query.kinds.length > 0 && !query.kinds.includes(kind)) return false;
  if (query.label !== undefined && meta.label !== query.label) return false;
  if (query.activeSince !== undefined && record.updatedAt < query.activeSince) return false;
  if (query.spawnedBy !== undefined && !isSpawnedBy(meta, query.spawnedBy)) return false;
  if (query.forkedFrom?.includes(meta.forkedFrom?.sessionId ?? "") === false) return false;
  return query.text === undefined || namesOf(record).includes(query.text.toLowerCase());
}

function isSpawnedBy({ spawnedBy }: SessionRecord["meta"], keys: string | readonly string[]): boolean {
  return typeof keys === "string" ? spawnedBy === keys : spawnedBy !== undefined && keys.includes(spawnedBy);
}

/** The text that `query.text` is searched in, in lower case. */
export function namesOf({ key, sessionId, name, meta }: SessionRecord): string {
  return [key, sessionId, name, meta.label, meta.displayName]
    .filter((each) => each !== undefined && each !== null)
    .join("\n")
    .toLowerCase();
}

type Kin = Pick<SessionRecord, "key" | "agentId" | "meta">;

/** Whether a session is within reach. `kin`: all sessions of the user, of any agent, including archived ones. */
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

/** Descendants can belong to agents outside the scope. */
export function userScope({ userId }: Scope): Scope {
  return userId === undefined ? {} : { userId };
}

/** A key and the keys of its descendants. Terminates even if the lineage is circular. */
function treeFrom(key: string, kin: Iterable<Kin>): Set<string> {
  const children = Map.groupBy(kin, ({ meta }) => meta.spawnedBy);
  const tree = new Set([key]);
  for (const parent of tree) for (const child of children.get(parent) ?? []) tree.add(child.key);
  return tree;
}

/** A page of entries: the oldest after `after`, otherwise the newest. */
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
  if (place !== -1) return place;
  throw new SkeinError("not_found", {
    what: "Entry",
    name: id,
    advice: "Use the ID of an entry of this session",
  });
}

/** Limits above the maximum are lowered to it. */

export function sessionLimit(limit: number | undefined): number {
  return within(limit ?? 100, 1000);
}

export function entryLimit(limit: number): number {
  return within(limit, 1000);
}

export function hitLimit(limit: number | undefined): number {
  return within(limit ?? 10, 50);
}

function within(limit: number, most: number): number {
  if (Number.isInteger(limit) && limit >= 1) return Math.min(limit, most);
  throw new SkeinError("invalid_arguments", {
    problem: `The limit ${limit} is not a whole number from 1 up`,
    advice: `Use 1 to ${most}`,
  });
}
