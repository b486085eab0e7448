import type { ListedSession, Scope, SearchQuery, SessionQuery } from "../contract.ts";
import type { ListPlace } from "../listing.ts";
import type { SearchTerm } from "../search-words.ts";
import type { IndexDb } from "./index-db.ts";
import { scopeWord } from "./index-words.ts";

/** Lists and searches as questions to the index. */

/** Hits beyond so many, from the newest on, are not ranked. */
const mostRanked = 20_000;

export interface FoundEntry {
  readonly uid: string;
  readonly entryId: string;
  readonly role: string;
  readonly time: number;
}

export function listSessions(
  { db }: IndexDb,
  scope: Scope,
  query: SessionQuery,
  limit: number,
  behind: ListPlace | null,
): ListedSession[] {
  const where = ["user = ?", "archived = ?"];
  const values: (string | number)[] = [scope.userId ?? "", query.archived === true ? 1 : 0];
  const add = (condition: string, ...more: (string | number)[]) => {
    where.push(condition);
    values.push(...more);
  };
  if (scope.agentId !== undefined) add("agent = ?", scope.agentId);
  if (query.kinds !== undefined && query.kinds.length > 0) {
    add(`kind IN (${query.kinds.map(() => "?").join(", ")})`, ...query.kinds);
  }
  if (query.label !== undefined) add("label = ?", query.label);
  if (query.spawnedBy !== undefined) add("spawned_by = ?", query.spawnedBy);
  if (query.activeSince !== undefined) add("updated_at >= ?", query.activeSince);
  if (query.text !== undefined) add("instr(names, ?) > 0", query.text.toLowerCase());
  if (query.includeGlobal !== true) add("special IS NOT 'global'");
  if (query.includeUnknown !== true) add("special IS NOT 'unknown'");
  if (behind !== null)
    add("(updated_at < ? OR (updated_at = ? AND uid < ?))", behind.updatedAt, behind.updatedAt, behind.uid);
  const order = "ORDER BY updated_at DESC, uid DESC LIMIT ?";
  const rows = db
    .sql(`SELECT record FROM sessions WHERE ${where.join(" AND ")} ${order}`)
    .all(...values, limit);
  return rows.map((row) => JSON.parse(String(row.record)) as ListedSession);
}

/** A search, made up so that it can be sent to another thread. */
export interface WordSearch {
  readonly match: string;
  readonly since: number;
  readonly until: number;
  readonly limit: number;
}

export function wordSearch(
  scope: Scope,
  query: SearchQuery,
  terms: readonly SearchTerm[],
  uid: string | null,
  limit: number,
): WordSearch {
  const asked = [
    scopeWord("u", scope.userId ?? ""),
    ...(scope.agentId === undefined ? [] : [scopeWord("a", scope.agentId)]),
    ...(uid === null ? [] : [scopeWord("s", uid)]),
    ...(query.role === undefined ? [] : [scopeWord("r", query.role)]),
  ];
  const body = terms.map(({ words, prefix }) => `"${words.join(" ")}"${prefix ? " *" : ""}`).join(" AND ");
  const match = `scope : (${asked.join(" AND ")}) AND body : (${body})`;
  return { match, since: query.since ?? 0, until: query.until ?? Number.MAX_SAFE_INTEGER, limit };
}

export function searchWords({ db }: IndexDb, { match, since, until, limit }: WordSearch): FoundEntry[] {
  const rows = db
    .sql(
      `SELECT said.uid, said.entry_id, said.role, said.time FROM
         (SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ${mostRanked}) AS hit
       JOIN said ON said.id = hit.rowid
       WHERE said.time >= ? AND said.time <= ? ORDER BY hit.rank, said.id DESC LIMIT ?`,
    )
    .all(match, since, until, limit);
  return rows.map((row) => ({
    uid: String(row.uid),
    entryId: String(row.entry_id),
    role: String(row.role),
    time: Number(row.time),
  }));
}
