import type { Entry } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import { parsingSession } from "../../core/parse-session.ts";
import { Slices } from "../../core/slices.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { EntryPage, EntryRange, ListedSession, SessionQuery, SessionReach } from "../contract.ts";
import type { SortedPlace } from "../list-query.ts";
import { pageOf, sortColumns, withinBytes } from "../list-query.ts";
import type { UserFigures } from "../work.ts";
import type { IndexDb, IndexedPlace } from "./index-db.ts";
import type { SessionFile } from "./session-file.ts";

/** Index queries: lists of sessions, and pages of entries with a single read. */

/** The users whose sessions are listed. */
interface ListScope {
  readonly userId?: string | typeof everyUser;
  readonly agentId?: string;
}

export const everyUser = Symbol("every user");

export function listSessions(
  { db }: IndexDb,
  scope: ListScope,
  query: SessionQuery,
  limit: number,
  behind: SortedPlace | null,
): ListedSession[] {
  const { sql, values, table } = listed(scope, query);
  const { column, isRising } = sortColumns[query.sort ?? "updated"];
  const after = `${column} ${isRising ? ">" : "<"} ? OR (${column} = ? AND uid < ?)`;
  const from = behind === null ? "" : ` AND (${after})`;
  const place = behind === null ? [] : [behind.value, behind.value, behind.uid];
  const order = `ORDER BY ${column} ${isRising ? "ASC" : "DESC"}, uid DESC LIMIT ?`;
  const rows = db
    .sql(`SELECT record FROM ${table} WHERE ${sql}${from} ${order}`)
    .all(...values, ...place, limit);
  return rows.map((row) => JSON.parse(String(row.record)) as ListedSession);
}

/** Returns totals per user. Users without sessions are omitted. */
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

export function countSessions({ db }: IndexDb, scope: ListScope, query: SessionQuery): number {
  const { sql, values, table } = listed(scope, query);
  return Number(db.sql(`SELECT count(*) AS count FROM ${table} WHERE ${sql}`).get(...values)?.count);
}

/** Builds the SQL condition for a list, without the cursor. */
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
  if (query.channels !== undefined)
    add("channel IN (SELECT value FROM json_each(?))", JSON.stringify(query.channels));
  if (query.label !== undefined) add("label = ?", query.label);
  const { spawnedBy } = query;
  if (typeof spawnedBy === "string") add("spawned_by = ?", spawnedBy);
  else if (spawnedBy !== undefined)
    add("spawned_by IN (SELECT value FROM json_each(?))", JSON.stringify(spawnedBy));
  const { forkedFrom } = query;
  if (forkedFrom !== undefined)
    add("forked_from IN (SELECT value FROM json_each(?))", JSON.stringify(forkedFrom));
  if (query.activeSince !== undefined) add("updated_at >= ?", query.activeSince);
  if (query.text !== undefined) add("instr(names, ?) > 0", query.text.toLowerCase());
  if (query.includeGlobal !== true) add("special IS NOT 'global'");
  if (query.includeUnknown !== true) add("special IS NOT 'unknown'");
  // A reach applies only within a single user.
  const reached = userId === everyUser ? null : reachCondition(userId, query.reach);
  if (reached !== null) add(reached.sql, ...reached.values);
  const sql = where.join(" AND ");
  if (query.uids === undefined) return { sql, values, table: tableFor(query, reached) };
  return { sql, values: [JSON.stringify(query.uids), ...values], table: wantedSessions };
}

/** `CROSS JOIN` makes SQLite look up each uid instead of scanning a user's sessions. */
const wantedSessions = "(SELECT value AS wanted FROM json_each(?)) CROSS JOIN sessions ON uid = wanted";

/**
 * Returns the table with the index to use. A session's children or forks are few compared with a tree or all of a
 * user's sessions.
 */
function tableFor({ spawnedBy, forkedFrom }: SessionQuery, reached: Condition | null): string {
  if (spawnedBy !== undefined) return "sessions INDEXED BY sessions_parent";
  return forkedFrom === undefined ? (reached?.table ?? "sessions") : "sessions INDEXED BY sessions_forks";
}

/** A condition on the `sessions` table, with its parameters. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly string[];
  /** The table, with the index to use. A tree is small compared with all of a user's sessions. */
  readonly table: string;
}

/**
 * A key and the keys of its descendants. `UNION` drops duplicates, so the query terminates even if the lineage is
 * circular. `CROSS JOIN` fixes the join order so that it goes from parents to children.
 */
const treeKeys = `WITH RECURSIVE tree (key) AS (
    VALUES (?) UNION
    SELECT child.key FROM tree CROSS JOIN sessions AS child ON child.user = ? AND child.spawned_by = tree.key
  ) SELECT key FROM tree`;

/** Returns `null` if there is no restriction. */
export function reachCondition(userId: string, reach: SessionReach | undefined): Condition | null {
  if (reach === undefined || reach.agentIds === "all") return null;
  const { agentIds } = reach;
  const tree = treeCondition(userId, reach);
  if (agentIds.length === 0) return tree ?? { sql: "FALSE", values: [], table: "sessions" };
  const agents = "agent IN (SELECT value FROM json_each(?))";
  const named = JSON.stringify(agentIds);
  if (tree === null) return { sql: agents, values: [named], table: "sessions" };
  return {
    sql: `(${agents} OR uid IN (SELECT uid FROM ${tree.table} WHERE user = ? AND ${tree.sql}))`,
    values: [named, userId, ...tree.values],
    table: "sessions",
  };
}

function treeCondition(userId: string, { treeOf, descendants }: SessionReach): Condition | null {
  const table = "sessions INDEXED BY sessions_key";
  if (treeOf === null) return null;
  if (descendants === false) return { sql: "key = ?", values: [treeOf], table };
  return { sql: `key IN (${treeKeys})`, values: [treeOf, userId], table };
}

/**
 * Reads a page with a single read of the log. Returns `null` if log order is not branch order, if the index is
 * outdated, or if an ID is unknown.
 */
export async function pageByIndex(
  index: IndexDb,
  uid: string,
  file: SessionFile,
  range: EntryRange,
): Promise<EntryPage | null> {
  const known = index.known(uid);
  if (known === null || known.logBytes !== file.size || known.identity !== file.identity) return null;
  const { fold } = known;
  // On a branch, log order is correct only where each entry's parent is the entry before it.
  const first = range.along === "all" ? 0 : fold.chain.position;
  if (range.along === "branch" && (fold.isOdd || fold.tip?.position !== fold.last?.position)) return null;
  const entries = fold.digest.entries;
  // A chain that starts at a root is the whole branch.
  const isWhole = range.along === "all" || index.parentAt(uid, first) === null;
  const positionOf = (id: string | undefined, without: number) =>
    id === undefined ? without : (index.place(uid, id)?.position ?? null);
  const after = positionOf(range.after, -1);
  const before = positionOf(range.before, entries);
  if (after === null || before === null) return null;
  // Entries before the chain might or might not be on the branch.
  if (before < first || (range.after !== undefined && after < first)) return null;
  const lowest = isWhole ? first : 0;
  const from = range.after === undefined ? Math.max(lowest, before - range.limit) : after + 1;
  const to = range.after === undefined ? before : Math.min(before, from + range.limit);
  if (from < first) return null;
  const wanted = index.places(uid, from, Math.max(from, to));
  const places = withinBytes(wanted, range.after !== undefined, range.bytes, ({ length }) => length);
  const found = await readTogether(file, places);
  if (found === null) return null;
  const some = found.length > 0;
  const isCut = places.length < wanted.length;
  return {
    entries: found,
    hasEarlier: some && (from > first || !isWhole || (isCut && range.after === undefined)),
    hasLater: some && (to < entries || (isCut && range.after !== undefined)),
    leafId: fold.leafId,
  };
}

async function readTogether(file: SessionFile, places: readonly IndexedPlace[]): Promise<Entry[] | null> {
  const [first, last] = [places[0], places.at(-1)];
  if (first === undefined || last === undefined) return [];
  const bytes = file.readLog(first.offset, last.offset + last.length - first.offset);
  const { lines } = await new Slices().run(parsingSession(bytes));
  const entries = lines.filter((line): line is Entry => !isCorrupt(line));
  return entries.length === places.length ? entries : null;
}

/** Returns the newest page of the branch if the loaded part contains enough of it. */
export function recentPage(tree: SessionTree, range: EntryRange): EntryPage | null {
  if (range.along !== "branch" || range.before !== undefined || range.after !== undefined) return null;
  const path = tree.path();
  const isCut = path[0] !== undefined && path[0].parentId !== null;
  if (isCut && path.length <= range.limit) return null;
  return pageOf(path, tree.leafId, range);
}
