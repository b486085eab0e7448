import { BoundedMap } from "../../core/bounded-map.ts";
import type { Clock } from "../../core/clock.ts";
import { KeyedMutex } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { SessionTree, TreeOptions } from "../../core/tree.ts";
import type { ChangeFeed } from "../change-feed.ts";
import type { ListedSession, Scope, SessionInit, SessionMeta, SessionRecord } from "../contract.ts";
import { newSession } from "../new-session.ts";
import { keyInScope, noSuchSession } from "../rules.ts";
import { firstMeta } from "../session-meta.ts";
import type { Attendance, FenceOption } from "../work.ts";
import type { PostgresDatabase, Sql } from "./database.ts";
import { driveScript } from "./drive-script.ts";
import { placesInTree } from "./entry-places.ts";
import type { PlacedEntry } from "./entry-rows.ts";
import { insertEntries } from "./entry-rows.ts";
import { idKey, userKey } from "./lookup-text.ts";
import type { SessionRow, StoredPlace, StoredSession } from "./session-row.ts";
import { rowOf } from "./session-row.ts";
import { insertSession, sizeOf } from "./session-writes.ts";

/** The dependencies that all session operations share. */
export interface SessionParts {
  readonly database: PostgresDatabase;
  readonly feed: ChangeFeed;
  readonly attendance: Attendance;
  readonly clock: Clock;
  readonly newId: IdSource;
}

/**
 * `write` excludes other changes to the session. `erase` also waits for copies in progress. `copy` only delays an
 * erasure.
 */
type RowLock = "none" | "write" | "erase" | "copy";

const mostRemembered = 10_000;

/** Finds, locks, creates and remembers session rows. */
export class SessionAccess {
  readonly parts: SessionParts;
  /**
   * Rows that this process has read or written. A row can be outdated, so a write that is based on it compares its
   * revision.
   */
  readonly #remembered = new BoundedMap<SessionRow>(mostRemembered);
  readonly #queues = new KeyedMutex();

  constructor(parts: SessionParts) {
    this.parts = parts;
  }

  get treeOptions(): TreeOptions {
    const { clock, newId } = this.parts;
    return { clock, newId };
  }

  /**
   * Runs changes to one session one after the other, so that their events are published in the order of the changes.
   */
  inOrder<T>(scope: Scope, sessionId: string, act: () => Promise<T>): Promise<T> {
    return this.#queues.run(nameOf(scope.userId, sessionId), act);
  }

  remembered({ userId, agentId }: Scope, sessionId: string): SessionRow | null {
    const row = this.#remembered.get(nameOf(userId, sessionId));
    const isInScope = agentId === undefined || row?.session.agentId === agentId;
    return row === undefined || row.removedAt !== null || !isInScope ? null : row;
  }

  remember(row: SessionRow): void {
    this.#remembered.set(nameOf(row.session.userId, row.session.sessionId), row);
  }

  forget({ userId, sessionId }: Pick<SessionRecord, "userId" | "sessionId">): void {
    this.#remembered.take(nameOf(userId, sessionId));
  }

  /** Returns a live session, or `null`. */
  async get(scope: Scope, sessionId: string): Promise<SessionRow | null> {
    const { rows } = await this.parts.database.call<FoundSession>(
      readSession,
      readArguments(scope, sessionId, "none"),
    );
    return liveRow(scope, rows);
  }

  /** Returns a live session in a transaction, or `null`. */
  async find(sql: Sql, scope: Scope, sessionId: string, lock: RowLock): Promise<SessionRow | null> {
    return liveRow(scope, await sql<FoundSession>(readSession, readArguments(scope, sessionId, lock)));
  }

  /** Like `find`, but throws `not_found` if there is no such session. */
  async require(sql: Sql, scope: Scope, sessionId: string, lock: RowLock): Promise<SessionRow> {
    return (await this.find(sql, scope, sessionId, lock)) ?? noSuchSession(sessionId);
  }

  /** Locks a session for a change. The fence is checked while the lock is held. */
  async lockHeld(
    sql: Sql,
    scope: Scope,
    sessionId: string,
    fence: FenceOption["fence"],
  ): Promise<SessionRow> {
    const row = await this.require(sql, scope, sessionId, "write");
    await this.checkFence(sql, row, fence);
    return row;
  }

  /** Throws `fenced` if the fence rejects the write. The row must be locked. */
  async checkFence(sql: Sql, row: SessionRow, fence: FenceOption["fence"]): Promise<void> {
    if (!(await passesFence(sql, row, fence)))
      throw new SkeinError("fenced", { sessionId: row.session.sessionId });
  }

  /** Locks a session in the trash. Returns `null` if it is not there. */
  async lockTrashed(sql: Sql, scope: Scope, sessionId: string): Promise<SessionRow | null> {
    const [found] = await sql<FoundSession>(readSession, readArguments(scope, sessionId, "erase"));
    const row = found === undefined ? null : foundRow(scope, found);
    return row === null || row.removedAt === null ? null : row;
  }

  /** Creates a session from a tree. A caller that repeats the transaction must pass the same `uid`. */
  async insert(
    sql: Sql,
    scope: Scope,
    init: SessionInit,
    uid: string,
    tree: SessionTree,
  ): Promise<SessionRow> {
    const { key, agentId } = keyInScope(scope, init.key);
    const meta: SessionMeta = firstMeta(init.meta);
    const userId = scope.userId ?? null;
    const session = newSession({ uid, userId, agentId, key, meta }, tree, this.parts.clock.now());
    const [row, placed] = rowOfTree(session, tree);
    await insertSession(sql, row);
    await insertEntries(sql, session, placed);
    return row;
  }

  publishCreated(row: SessionRow): SessionRecord {
    this.remember(row);
    const session = recordOf(row.session);
    this.parts.feed.publish({ type: "created", session });
    return session;
  }
}

async function passesFence(sql: Sql, row: SessionRow, fence: FenceOption["fence"]): Promise<boolean> {
  if (fence === undefined) return true;
  if (typeof fence === "function") return fence();
  const { held } = fence;
  if (held !== undefined) return row.holderRun === held.runId && row.fence === held.fence;
  return driveScript(sql, fence.script());
}

/** Returns the row and the entries for a session that consists of a whole tree. */
export function rowOfTree(session: ListedSession, tree: SessionTree): [SessionRow, PlacedEntry[]] {
  const { byId, isOdd } = placesInTree(tree);
  const lines = [...tree.encodeLines()].slice(1);
  const placed = [...tree.entries()].flatMap((entry, index) => {
    const place = byId.get(entry.id);
    return place === undefined ? [] : [{ entry, line: lines[index]?.trimEnd() ?? "", place }];
  });
  const { header, tipId } = tree;
  const tip = tipId === null ? null : (byId.get(tipId) ?? null);
  const bytes = Buffer.byteLength(JSON.stringify(header)) + 1 + sizeOf(placed);
  const unheld = { holderRun: null, fence: 0 };
  const row = { session, header, removedAt: null, revision: 1, tipId, tip, isOdd, bytes, ...unheld };
  return [row, placed];
}

/** A listed session without its digest. */
export function recordOf({ digest: _digest, ...record }: ListedSession): SessionRecord {
  return record;
}

const readSession = "SELECT session, tip FROM skein.read_session($1, $2, $3, $4)";

interface FoundSession {
  readonly session: StoredSession;
  readonly tip: StoredPlace | null;
}

function readArguments({ userId, agentId }: Scope, sessionId: string, lock: RowLock): (string | null)[] {
  return [userKey(userId), agentId ?? null, idKey(sessionId), lock];
}

function foundRow({ userId = null }: { readonly userId?: string | null }, found: FoundSession): SessionRow {
  return rowOf(userId, found.session, found.tip);
}

function liveRow(scope: Scope, rows: readonly FoundSession[]): SessionRow | null {
  const row = rows[0] === undefined ? null : foundRow(scope, rows[0]);
  return row === null || row.removedAt !== null ? null : row;
}

function nameOf(userId: string | null | undefined, sessionId: string): string {
  return `${userKey(userId)}\n${sessionId.toLowerCase()}`;
}
