import { SkeinError } from "../core/errors.ts";
import type { ListedSession, SessionPage, SessionQuery, SessionRecord } from "./contract.ts";

/** How sessions are filtered, ordered and paged, the same in every store. */

/** A place in the order of a list: newest first, then by uid. */
export interface ListPlace {
  readonly updatedAt: number;
  readonly uid: string;
}

/** A page from all that was found behind the page before, in order: at least one more than the limit, if there are. */
export function listPage(found: readonly ListedSession[], limit: number, behind: number): SessionPage {
  const last = found[limit - 1];
  const nextCursor = found.length > limit && last !== undefined ? encodeCursor(last) : null;
  return { sessions: found.slice(0, limit), nextCursor, behind };
}

export function encodeCursor({ updatedAt, uid }: ListPlace): string {
  return `${updatedAt}.${uid}`;
}

export function decodeCursor(cursor: string | undefined): ListPlace | null {
  if (cursor === undefined) return null;
  const [, updatedAt, uid] = /^(\d{1,16})\.([\w-]+)$/.exec(cursor) ?? [];
  if (updatedAt === undefined || uid === undefined) {
    throw new SkeinError("invalid_arguments", {
      problem: `The cursor "${cursor}" is not one of ours`,
      advice: "Take nextCursor of the page before, or leave it out",
    });
  }
  return { updatedAt: Number(updatedAt), uid };
}

/** Before zero: `a` comes first in a list. */
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
  return query.text === undefined || namesOf(record).includes(query.text.toLowerCase());
}

function isSpawnedBy({ spawnedBy }: SessionRecord["meta"], keys: string | readonly string[]): boolean {
  return typeof keys === "string" ? spawnedBy === keys : spawnedBy !== undefined && keys.includes(spawnedBy);
}

/** All that a session is called, one a line: what a query's text is looked for in, both lowered. */
export function namesOf({ key, sessionId, name, meta }: SessionRecord): string {
  return [key, sessionId, name, meta.label, meta.displayName]
    .filter((each) => each !== undefined && each !== null)
    .join("\n")
    .toLowerCase();
}
