import type { ListedSession, Scope, SearchQuery, SessionQuery } from "../contract.ts";
import type { ListPlace } from "../listing.ts";
import type { SearchTerm, SearchTerms } from "../search-words.ts";
import type { IndexDb } from "./index-db.ts";
import type { Condition } from "./index-reach.ts";
import { reachCondition } from "./index-reach.ts";
import { scopeWord } from "./index-words.ts";

/** Lists and searches as questions to the index. */

/** Hits beyond so many, from the newest on, are not ranked. */
const mostRanked = 20_000;

export interface FoundEntry {
  /** Its row in the index. Of equal hits, the higher row comes first. */
  readonly row: number;
  readonly hasAllWords: boolean;
  /** Lower is better. */
  readonly rank: number;
  readonly uid: string;
  readonly entryId: string;
  readonly role: string;
  readonly time: number;
}

/** Whose sessions are listed; `userId: everyUser` stands for all of them. */
export interface ListScope {
  readonly userId?: string | typeof everyUser;
  readonly agentId?: string;
}

export const everyUser = Symbol("every user");

export function listSessions(
  { db }: IndexDb,
  scope: ListScope,
  query: SessionQuery,
  limit: number,
  behind: ListPlace | null,
): ListedSession[] {
  const { sql, values, table } = listed(scope, query);
  const from = behind === null ? "" : " AND (updated_at < ? OR (updated_at = ? AND uid < ?))";
  const place = behind === null ? [] : [behind.updatedAt, behind.updatedAt, behind.uid];
  const order = "ORDER BY updated_at DESC, uid DESC LIMIT ?";
  const rows = db
    .sql(`SELECT record FROM ${table} WHERE ${sql}${from} ${order}`)
    .all(...values, ...place, limit);
  return rows.map((row) => JSON.parse(String(row.record)) as ListedSession);
}

/** What the sessions of a user come to, those in the trash left out. */
export interface UserFigures {
  /** `null`: the unnamed user. */
  readonly userId: string | null;
  readonly sessions: number;
  readonly lastActiveAt: number;
  /** Of their logs. */
  readonly bytes: number;
  readonly totalTokens: number;
}

/** Users without a session are left out. */
export function userFigures({ db }: IndexDb, userIds: readonly (string | null)[]): UserFigures[] {
  const rows = db
    .sql(
      `SELECT user, count(*) AS sessions, max(updated_at) AS last, sum(log_bytes) AS bytes,
         sum(json_extract(record, '$.digest.totalTokens')) AS tokens
       FROM sessions WHERE user IN (SELECT value FROM json_each(?)) GROUP BY user`,
    )
    .all(JSON.stringify(userIds.map((userId) => userId ?? "")));
  return rows.map(({ user, sessions, last, bytes, tokens }) => ({
    userId: user === "" ? null : String(user),
    sessions: Number(sessions),
    lastActiveAt: Number(last),
    bytes: Number(bytes),
    totalTokens: Number(tokens),
  }));
}

/** How many sessions a list would show in all. */
export function countSessions({ db }: IndexDb, scope: Scope, query: SessionQuery): number {
  const { sql, values, table } = listed(scope, query);
  return Number(db.sql(`SELECT count(*) AS count FROM ${table} WHERE ${sql}`).get(...values)?.count);
}

/** What a list shows, wherever its pages begin. */
function listed(
  scope: ListScope,
  query: SessionQuery,
): { sql: string; values: (string | number)[]; table: string } {
  const { userId = "" } = scope;
  const where = ["archived = ?"];
  const values: (string | number)[] = [query.archived === true ? 1 : 0];
  const add = (condition: string, ...more: readonly (string | number)[]) => {
    where.push(condition);
    values.push(...more);
  };
  if (userId !== everyUser) add("user = ?", userId);
  if (scope.agentId !== undefined) add("agent = ?", scope.agentId);
  if (query.kinds !== undefined && query.kinds.length > 0) {
    add(`kind IN (${query.kinds.map(() => "?").join(", ")})`, ...query.kinds);
  }
  if (query.label !== undefined) add("label = ?", query.label);
  const { spawnedBy } = query;
  if (typeof spawnedBy === "string") add("spawned_by = ?", spawnedBy);
  else if (spawnedBy !== undefined)
    add("spawned_by IN (SELECT value FROM json_each(?))", JSON.stringify(spawnedBy));
  if (query.activeSince !== undefined) add("updated_at >= ?", query.activeSince);
  if (query.text !== undefined) add("instr(names, ?) > 0", query.text.toLowerCase());
  if (query.includeGlobal !== true) add("special IS NOT 'global'");
  if (query.includeUnknown !== true) add("special IS NOT 'unknown'");
  // A reach is of one user's sessions.
  const reached = userId === everyUser ? null : reachCondition(userId, query.reach);
  if (reached !== null) add(reached.sql, ...reached.values);
  // Children are few beside all that a user has, and beside a tree too.
  const table =
    spawnedBy === undefined ? (reached?.table ?? "sessions") : "sessions INDEXED BY sessions_parent";
  return { sql: where.join(" AND "), values, table };
}

/** A search, made up so that it can be sent to another thread. */
export interface WordSearch {
  /** Asked in this order until there are enough hits: all words first, then any. */
  readonly matches: readonly string[];
  readonly since: number;
  readonly until: number;
  readonly limit: number;
  /** Of the sessions that are searched; `null`: all of the scope. */
  readonly reached: Condition | null;
  /** Looks at this row of the index alone; `null`: at all. */
  readonly row: number | null;
}

export function wordSearch(
  scope: Scope,
  query: SearchQuery,
  { all, any }: SearchTerms,
  uid: string | null,
  limit: number,
): WordSearch {
  const asked = [
    scopeWord("u", scope.userId ?? ""),
    ...(scope.agentId === undefined ? [] : [scopeWord("a", scope.agentId)]),
    ...(uid === null ? [] : [scopeWord("s", uid)]),
    ...(query.role === undefined ? [] : [scopeWord("r", query.role)]),
  ];
  const match = (terms: readonly SearchTerm[], operator: "AND" | "OR") => {
    const body = terms.map(({ words, prefix }) => `"${words.join(" ")}"${prefix ? " *" : ""}`);
    return `scope : (${asked.join(" AND ")}) AND body : (${body.join(` ${operator} `)})`;
  };
  const matches = [match(all, "AND"), ...(any.length > 1 ? [match(any, "OR")] : [])];
  const userId = scope.userId ?? "";
  const condition = reachCondition(userId, query.reach);
  const reached = condition && {
    ...condition,
    sql: `user = ? AND ${condition.sql}`,
    values: [userId, ...condition.values],
  };
  const { since = 0, until = Number.MAX_SAFE_INTEGER } = query;
  return { matches, since, until, limit, reached, row: null };
}

/** The words of the scope, in the first column, do not count. */
const rank = "bm25(words, 0.0, 1.0) AS rank";
const hitsOfAll = `SELECT rowid, ${rank} FROM words WHERE words MATCH ?`;
/** Sessions out of reach are left out before anything is cut off: their hits cannot crowd out the others. */
const hitsOf = ({ sql, table }: Condition) =>
  `SELECT words.rowid, ${rank} FROM words CROSS JOIN said AS heard ON heard.id = words.rowid
   WHERE words MATCH ? AND heard.uid IN (SELECT uid FROM ${table} WHERE ${sql})`;

/** Best first, those with all words before the others. */
export function searchWords(index: IndexDb, search: WordSearch): FoundEntry[] {
  const found = new Map<number, FoundEntry>();
  for (const [at, match] of search.matches.entries()) {
    if (found.size >= search.limit) break;
    for (const each of rankedHits(index, match, search))
      if (!found.has(each.row)) found.set(each.row, { ...each, hasAllWords: at === 0 });
  }
  return [...found.values()].slice(0, search.limit);
}

function rankedHits({ db }: IndexDb, match: string, search: WordSearch): Omit<FoundEntry, "hasAllWords">[] {
  const { since, until, limit, reached, row } = search;
  const only = row === null ? "" : ` AND words.rowid = ${row}`;
  const hits = `${reached === null ? hitsOfAll : hitsOf(reached)}${only} ORDER BY words.rowid DESC LIMIT ${mostRanked}`;
  const rows = db
    .sql(
      `SELECT said.id, hit.rank, said.uid, said.entry_id, said.role, said.time FROM
         (${hits}) AS hit
       JOIN said ON said.id = hit.rowid
       WHERE said.time >= ? AND said.time <= ? ORDER BY hit.rank, said.id DESC LIMIT ?`,
    )
    .all(match, ...(reached?.values ?? []), since, until, limit);
  return rows.map((found) => ({
    row: Number(found.id),
    rank: Number(found.rank),
    uid: String(found.uid),
    entryId: String(found.entry_id),
    role: String(found.role),
    time: Number(found.time),
  }));
}
