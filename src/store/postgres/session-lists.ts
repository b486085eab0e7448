import { spawnIdOf } from "../../core/keys.ts";
import { present } from "../../core/present.ts";
import type { Lookup } from "../../core/references.ts";
import type { Script } from "../../core/script.ts";
import { queryRow } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type { ListedSession, Scope, SearchQuery, SessionQuery, SessionReach } from "../contract.ts";
import type { SortedPlace } from "../list-query.ts";
import { decodeCursor, listPage, sessionLimit, sortColumns } from "../list-query.ts";
import type { EveryUser, UserFigures } from "../work.ts";
import type { Actor, PostgresDatabase, SqlValue } from "./database.ts";
import { everyUser } from "./database.ts";
import { acceptedText, idKey, lookupText, userKey } from "./lookup-text.ts";
import type { SessionRow, StoredSession } from "./session-row.ts";
import { rowOf, storedColumns, userOf } from "./session-row.ts";

/** Queries for lists of sessions. Every condition compares a column that `columnsOf` writes. */

/** Collects conditions and their parameters. */
export class Conditions {
  readonly values: SqlValue[] = [];
  readonly #conditions: string[] = [];

  /** Adds a parameter and returns its placeholder. */
  value(value: SqlValue): string {
    return `$${this.values.push(value)}`;
  }

  add(condition: string): void {
    this.#conditions.push(condition);
  }

  get sql(): string {
    return this.#conditions.join(" AND ");
  }
}

/** Like `Scope`, but can also cover all users. */
interface ListScope {
  readonly userId?: Actor;
  readonly agentId?: string;
}

function inScope({ userId, agentId }: ListScope, from: "live" | "trash"): Conditions {
  const where = new Conditions();
  if (userId !== everyUser) where.add(`user_id = ${where.value(userKey(userId))}`);
  where.add(from === "live" ? "removed_at IS NULL" : "removed_at IS NOT NULL");
  if (agentId !== undefined) where.add(`agent_id = ${where.value(agentId)}`);
  return where;
}

export async function listSessions(
  database: PostgresDatabase,
  scope: ListScope,
  query: SessionQuery,
  limit: number,
  behind: SortedPlace | null,
): Promise<ListedSession[]> {
  const where = listed(scope, query);
  const { column, isRising } = sortColumns[query.sort ?? "updated"];
  if (behind !== null) {
    const value = typeof behind.value === "string" ? acceptedText(behind.value) : behind.value;
    const [at, uid] = [where.value(value), where.value(behind.uid)];
    where.add(`(${column} ${isRising ? ">" : "<"} ${at} OR (${column} = ${at} AND uid < ${uid}))`);
  }
  const order = `ORDER BY ${column} ${isRising ? "ASC" : "DESC"}, uid DESC LIMIT ${where.value(limit)}`;
  return (await readSessions(database, scope, where, order)).map(({ session }) => session);
}

export async function countSessions(
  database: PostgresDatabase,
  scope: ListScope,
  query: SessionQuery,
): Promise<number> {
  const where = listed(scope, query);
  const text = `SELECT count(*) AS count FROM skein.sessions WHERE ${where.sql}`;
  const [row] = await database.read<{ count: number }>(scope.userId ?? null, text, where.values);
  return row?.count ?? 0;
}

export async function listAgents(database: PostgresDatabase, scope: Scope): Promise<string[]> {
  const where = inScope(scope, "live");
  const text = `SELECT DISTINCT agent_id FROM skein.sessions WHERE ${where.sql}`;
  const rows = await database.read<{ agent_id: string }>(scope.userId ?? null, text, where.values);
  return rows.map((row) => row.agent_id).toSorted();
}

export async function listTrash(database: PostgresDatabase, scope: Scope): Promise<SessionRow[]> {
  return readSessions(database, scope, inScope(scope, "trash"), "ORDER BY removed_at DESC, uid DESC");
}

export async function findSessions(
  database: PostgresDatabase,
  scope: Scope,
  lookup: Lookup,
): Promise<SessionRow[]> {
  const where = inScope(scope, "live");
  const equals = (column: string, value: string) => where.add(`${column} = ${where.value(value)}`);
  switch (lookup.by) {
    case "key":
      equals("key", lookupText(lookup.key));
      break;
    case "spawnId":
      equals("spawn_id", lookupText(lookup.spawnId));
      break;
    case "sessionId":
      equals("id_key", idKey(lookup.sessionId));
      break;
    case "uid":
      equals("uid", lookupText(lookup.uid));
      break;
    case "label":
      equals("label", lookupText(lookup.label));
      equals("agent_id", lookup.agentId);
      break;
    case "prefix": {
      const prefix = acceptedText(lookup.prefix);
      const lowered = prefix.toLowerCase();
      // No session ID contains a tilde, which is greater than all characters that it can contain.
      where.add(`id_key >= ${where.value(lowered)} AND id_key < ${where.value(`${lowered}~`)}`);
      where.add(`starts_with(session_id, ${where.value(prefix)})`);
    }
  }
  const rows = await readSessions(database, scope, where, "ORDER BY uid");
  return lookup.by === "spawnId"
    ? rows.filter(({ session }) => spawnIdOf(session.key) === lookup.spawnId)
    : rows;
}

async function readSessions(
  database: PostgresDatabase,
  { userId = null }: ListScope,
  where: Conditions,
  order: string,
): Promise<SessionRow[]> {
  const text = `SELECT ${storedColumns}, user_id FROM skein.sessions WHERE ${where.sql} ${order}`;
  const rows = await database.read<StoredSession & { user_id: string }>(userId, text, where.values);
  return rows.map((row) => rowOf(userId === everyUser ? userOf(row.detail, row.user_id) : userId, row));
}

/** The conditions of a list, without the cursor. */
function listed(scope: ListScope, query: SessionQuery): Conditions {
  const where = inScope(scope, "live");
  const among = (column: string, values: readonly string[] | undefined) => {
    if (values !== undefined) where.add(`${column} = ANY (${where.value(values.map(lookupText))})`);
  };
  where.add(query.archived === true ? "archived" : "NOT archived");
  if (query.kinds !== undefined && query.kinds.length > 0) among("kind", query.kinds);
  among("uid", query.uids);
  among("channel", query.channels);
  among("label", query.label === undefined ? undefined : [query.label]);
  among("spawned_by", typeof query.spawnedBy === "string" ? [query.spawnedBy] : query.spawnedBy);
  among("forked_from", query.forkedFrom);
  if (query.activeSince !== undefined) where.add(`updated_at >= ${where.value(query.activeSince)}`);
  if (query.text !== undefined)
    where.add(`strpos(names, ${where.value(acceptedText(query.text.toLowerCase()))}) > 0`);
  if (query.includeGlobal !== true) where.add("key <> 'global'");
  if (query.includeUnknown !== true) where.add("key <> 'unknown'");
  // A reach applies only within a single user.
  if (query.reach !== undefined && scope.userId !== everyUser) addReach(where, scope.userId, query.reach);
  return where;
}

/** The conditions of the sessions that a search covers. */
export function searchedSessions(
  scope: Scope,
  { sessionId, reach }: Pick<SearchQuery, "sessionId" | "reach">,
): Conditions {
  const where = inScope(scope, "live");
  if (sessionId !== undefined) where.add(`id_key = ${where.value(idKey(sessionId))}`);
  if (reach !== undefined) addReach(where, scope.userId, reach);
  return where;
}

function addReach(
  where: Conditions,
  userId: Scope["userId"] | null,
  { treeOf, descendants, agentIds }: SessionReach,
): void {
  if (agentIds === "all") return;
  const reached = [`agent_id = ANY (${where.value([...agentIds])})`];
  if (treeOf !== null) {
    const key = where.value(lookupText(treeOf));
    const tree = () => `skein.tree_keys(${where.value(userKey(userId))}, ${key})`;
    reached.push(descendants === false ? `key = ${key}` : `key = ANY (ARRAY(SELECT ${tree()}))`);
  }
  where.add(`(${reached.join(" OR ")})`);
}

/** Returns the live session that has a key or session ID, or `null`. */
export function* findRef(
  userId: string | null,
  by: { readonly key: string } | { readonly sessionId: string },
): Script<SessionRef | null> {
  const [column, value] = "key" in by ? ["key", lookupText(by.key)] : ["id_key", idKey(by.sessionId)];
  // The engine decodes all text that a script reads. A session's details are not encoded, so they are read as base64.
  const row = yield* queryRow(
    `SELECT uid, agent_id, session_id, encode(convert_to(detail, 'UTF8'), 'base64') AS detail
     FROM skein.sessions WHERE user_id = ? AND ${column} = ? AND removed_at IS NULL`,
    userKey(userId),
    value,
  );
  if (row === undefined) return null;
  const { key } = JSON.parse(Buffer.from(String(row.detail), "base64").toString()) as { key: string };
  return {
    uid: String(row.uid),
    userId,
    agentId: String(row.agent_id),
    key,
    sessionId: String(row.session_id),
  };
}

/** A range of user keys. Both ends are excluded. */
interface KeyRange {
  readonly after?: string;
  readonly before?: string | null;
  readonly limit?: number | null;
}

/** Returns the users with sessions, in the order of their keys. */
export async function listUsers(
  database: PostgresDatabase,
  { after = "", before = null, limit = null }: KeyRange = {},
): Promise<(string | null)[]> {
  const next = (from: string) => `SELECT x.user_id, x.detail FROM skein.sessions AS x
    WHERE x.user_id > ${from} AND ($2::text IS NULL OR x.user_id < $2) ORDER BY x.user_id LIMIT 1`;
  const rows = await database.read<{ detail: string; user_id: string }>(
    everyUser,
    `WITH RECURSIVE users AS ((${next("$1")}) UNION ALL
       SELECT s.user_id, s.detail FROM users AS u CROSS JOIN LATERAL (${next("u.user_id")}) AS s)
     SELECT user_id, detail FROM users LIMIT $3`,
    [after, before, limit],
  );
  return rows.map(({ detail, user_id }) => userOf(detail, user_id));
}

/** Lists across all users. `database` can read the rows of all of them. */
export function listEveryUser(database: PostgresDatabase): EveryUser {
  const scopeFor = (agentId: string | undefined) => ({ userId: everyUser, ...present({ agentId }) }) as const;
  return {
    usersAfter: (after, limit) => pageOfUsers(database, after, limit),
    userFigures: async (userIds) => ({ figures: await readFigures(database, userIds), behind: 0 }),
    listAllUsers: async (query, agentId) => {
      const limit = sessionLimit(query.limit);
      const place = decodeCursor(query.cursor, query.sort);
      const found = await listSessions(database, scopeFor(agentId), query, limit + 1, place);
      return listPage(found, limit, 0, query.sort);
    },
    countAllUsers: (query, agentId) => countSessions(database, scopeFor(agentId), query),
  };
}

/** The character after `~`. */
const aboveTilde = "\u007f";

/**
 * For most users, the order of keys is the order of user IDs. A key that differs from its user ID starts with `~`.
 * There are few such users, so all of them are read and merged into the page.
 */
async function pageOfUsers(
  database: PostgresDatabase,
  after: string | null | undefined,
  limit: number,
): Promise<(string | null)[]> {
  const from = acceptedText(after ?? "");
  const found = await Promise.all([
    listUsers(database, { after: from, before: "~", limit }),
    listUsers(database, { after: "~", before: aboveTilde }),
    listUsers(database, { after: from > aboveTilde ? from : aboveTilde, limit }),
  ]);
  const isAfter = (userId: string | null) => after === undefined || compareUsers(userId, after) > 0;
  return found.flat().filter(isAfter).toSorted(compareUsers).slice(0, limit);
}

function compareUsers(a: string | null, b: string | null): number {
  return Buffer.compare(Buffer.from(a ?? ""), Buffer.from(b ?? ""));
}

async function readFigures(
  database: PostgresDatabase,
  userIds: readonly (string | null)[],
): Promise<UserFigures[]> {
  const names = new Map(userIds.map((userId) => [userKey(userId), userId]));
  const rows = await database.read<Omit<UserFigures, "userId"> & { user_id: string }>(
    everyUser,
    `SELECT user_id, count(*)::bigint AS sessions, max(updated_at) AS "lastActiveAt", sum(bytes)::bigint AS bytes,
       sum(tokens) AS "totalTokens"
     FROM skein.sessions WHERE user_id = ANY ($1) AND removed_at IS NULL GROUP BY user_id`,
    [[...names.keys()]],
  );
  return rows.map(({ user_id, ...figures }) => ({ userId: names.get(user_id) ?? null, ...figures }));
}
