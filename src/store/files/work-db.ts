import type { SessionHeader } from "../../core/entries.ts";
import { newHeader } from "../../core/entries.ts";
import { retryAdvice, SkeinError } from "../../core/errors.ts";
import { kindOf, parseKey } from "../../core/keys.ts";
import type { Script } from "../../core/script.ts";
import { runOn, valueScript } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { sessionRefOf } from "../../core/session-ref.ts";
import type { AfterCommit, RemovedEntries, WorkAttendant } from "../../runs/contract.ts";
import type { MetaPatch, SessionMeta, SessionRecord } from "../contract.ts";
import { withoutDisplayName } from "../redact.ts";
import { noSuchSession, throwTaken } from "../rules.ts";
import type { StoreWork } from "../work.ts";
import { Attendance, doNothing } from "../work.ts";
import { Database } from "./database.ts";
import type { ProcessIdentity } from "./process-identity.ts";

/**
 * `pending` means that the session was accepted and its files will be created on first use. `forking` means that its
 * files are being written. Callers cannot see the session until this is done.
 */
export type SessionState = "pending" | "forking" | "live" | "trashed";

/**
 * A session's row in `work.db`. It contains all initial values of the session's log, so a crash after the commit loses
 * nothing.
 */
export interface SessionRow extends SessionRef {
  readonly state: SessionState;
  /** The user's folder relative to the root, with slashes. Empty for the unnamed user. */
  readonly home: string;
  readonly label: string | null;
  readonly createdAt: number;
  /** When the session was moved to the trash. */
  readonly removedAt: number | null;
  /** A metadata change that has been committed here but is not yet in the log. */
  readonly todo: MetaPatch | null;
  /** The contents of the log's header. */
  readonly first: {
    readonly cwd: string;
    readonly meta: SessionMeta;
    readonly parentSession?: string;
    /** The process that is writing the files of a session in state `forking`. */
    readonly maker?: ProcessIdentity;
    /** When that process started the fork. A fork's `createdAt` can be much older. */
    readonly claimedAt?: number;
  };
}

/** Whether callers can see the session. */
export function isVisible(row: SessionRow): boolean {
  return row.state === "pending" || row.state === "live";
}

/** The fields that a session's log adds to its row. */
export interface LogSummary {
  readonly cwd: string;
  readonly meta: SessionMeta;
  readonly version: number;
  readonly name: string | null;
  /** Time of the last conversation entry. `null` or 0 if there is none. */
  readonly saidAt: number | null;
  readonly leafId: string | null;
}

/** Builds a session's record. `log` is omitted if the log does not exist yet. */
export function recordOf(row: SessionRow, log?: LogSummary): SessionRecord {
  const { createdAt, first } = row;
  const { saidAt, cwd, meta, version, name, leafId } = log ?? {
    ...first,
    version: 1,
    name: null,
    saidAt: 0,
    leafId: null,
  };
  const { uid, userId, agentId, key, sessionId } = row;
  const updatedAt = Math.max(createdAt, saidAt ?? 0);
  const kind = kindOf(parseKey(key));
  return {
    ...{ uid, userId, agentId, key, kind, sessionId, cwd },
    ...{ version, meta, name, createdAt, updatedAt, leafId },
  };
}

/** Builds the header of a session's log. */
export function headerOf(row: SessionRow): SessionHeader {
  const { cwd, meta, parentSession } = row.first;
  const header = newHeader({ id: row.sessionId, time: row.createdAt, cwd, parentSession });
  const user = row.userId === null ? {} : { user: row.userId };
  return { ...header, skein: { key: row.key, uid: row.uid, agent: row.agentId, ...user, meta } };
}

const migrations = [
  `CREATE TABLE sessions (
     uid TEXT PRIMARY KEY,
     user TEXT NOT NULL,
     agent TEXT NOT NULL,
     key TEXT NOT NULL,
     session_id TEXT NOT NULL,
     label TEXT,
     created_at INTEGER NOT NULL,
     state TEXT NOT NULL,
     home TEXT NOT NULL,
     first TEXT NOT NULL,
     removed_at INTEGER,
     todo TEXT
   ) STRICT, WITHOUT ROWID;
   CREATE UNIQUE INDEX sessions_key ON sessions (user, key) WHERE state <> 'trashed';
   CREATE UNIQUE INDEX sessions_id ON sessions (user, session_id COLLATE NOCASE);
   CREATE UNIQUE INDEX sessions_label ON sessions (user, agent, label) WHERE state <> 'trashed' AND label IS NOT NULL;
   CREATE UNIQUE INDEX sessions_place ON sessions (home, agent, session_id COLLATE NOCASE);
   CREATE INDEX sessions_todo ON sessions (uid) WHERE todo IS NOT NULL;
   CREATE INDEX sessions_state ON sessions (state) WHERE state <> 'live';
   CREATE TABLE dirty (uid TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
   CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
   CREATE TABLE tombstones (id INTEGER PRIMARY KEY, what TEXT NOT NULL, name TEXT NOT NULL, at INTEGER NOT NULL) STRICT;`,
];

/** Data that was lost along with a database. */
interface Loss {
  readonly at: number;
  readonly note: string;
  /** Whether the loss has been reported at startup. */
  readonly isTold: boolean;
}

interface Tombstone {
  readonly what: "session" | "user";
  readonly name: string;
  readonly at: number;
}

const mostLosses = 10;
const mostRows = 10_000;
export const sessionColumns =
  "uid, user, agent, key, session_id, label, created_at, state, home, first, removed_at, todo";
/** The first condition is redundant, but without it SQLite does not use the partial indexes on names. */
const isNamed = "state <> 'trashed' AND state IN ('pending', 'live')";

/**
 * `work.db`: durable state that is not part of a conversation. This class owns the sessions table, which records which
 * session has which key, session ID and label. Every commit is synced.
 */
export class WorkDb {
  readonly path: string;
  /** The database itself, for run state that changes in the same transactions as sessions. */
  readonly ledger: Database;
  readonly attendance = new Attendance();
  /** Rows by user and session ID, valid until another connection changes the file. */
  readonly #rows = new Map<string, SessionRow | null>();
  #dataVersion = 0;

  constructor(path: string, { mustExist = false }: { readonly mustExist?: boolean } = {}) {
    this.path = path;
    const pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;";
    this.ledger = new Database(path, pragmas, migrations, { isPinned: true, mustExist });
  }

  /**
   * Claims key, session ID and label for a new session. Throws `conflict` if one of them is taken. The script runs in
   * the same transaction and returns a function to call after the commit.
   */
  claim(row: SessionRow, act: () => Script<AfterCommit> = () => valueScript(doNothing)): AfterCommit {
    let emit = doNothing;
    this.#claiming([row.uid], () => {
      this.#insert(row);
      emit = this.#run(act());
    });
    return emit;
  }

  /**
   * Moves the key to a new session. The change is kept in `todo` until it has been written to the old session's log.
   */
  reset(uid: string, change: MetaPatch & { readonly key: string }, fresh: SessionRow, isOwner = false): void {
    let emit = doNothing;
    this.#claiming([uid, fresh.uid], () => {
      const old = this.byUid(uid);
      if (old !== null)
        emit = this.#run(this.#attendant.reset(sessionRefOf(old), sessionRefOf(fresh), isOwner));
      const sql = "UPDATE sessions SET key = ?, label = NULL, todo = ? WHERE uid = ? AND key = ?";
      const { changes } = orTaken(change, () =>
        this.ledger.run(sql, change.key, JSON.stringify(change), uid, fresh.key),
      );
      if (Number(changes) === 0) {
        throw new SkeinError("conflict", {
          problem: `The key ${fresh.key} now belongs to another session`,
          advice: retryAdvice,
        });
      }
      this.#insert(fresh);
    });
    emit();
  }

  /** Moves a session to the trash. Unread messages from other sessions are passed to the session that spawned it. */
  trash(row: SessionRow, spawnedBy: string | undefined, time: number): void {
    let emit = doNothing;
    this.exclusively(() => {
      const now = this.byUid(row.uid);
      if (now === null || !isVisible(now)) return noSuchSession(row.sessionId);
      const parent = spawnedBy === undefined ? null : this.byKey(row.userId, spawnedBy);
      emit = this.#run(
        this.#attendant.remove(sessionRefOf(row), parent === null ? null : sessionRefOf(parent)),
      );
      this.move(row.uid, now.state, "trashed", time);
    });
    emit();
  }

  /** Returns rows with a change that is not in their log yet. */
  withTodo(): SessionRow[] {
    return this.#many("todo IS NOT NULL");
  }

  clearTodo(uid: string): void {
    this.#claiming([uid], () => this.ledger.run("UPDATE sessions SET todo = NULL WHERE uid = ?", uid));
  }

  claimLabel(uid: string, label: string | null): void {
    const sql = "UPDATE sessions SET label = ? WHERE uid = ?";
    this.#claiming([uid], () => orTaken({ label }, () => this.ledger.run(sql, label, uid)));
  }

  /**
   * Changes the state if it is still `from`. Leaving the trash throws `conflict` if the key or label has been taken
   * since.
   */
  move(uid: string, from: SessionState, to: SessionState, time: number | null = null): void {
    const sql = "UPDATE sessions SET state = ?, removed_at = ? WHERE uid = ? AND state = ?";
    this.#claiming([uid], () =>
      orTaken(this.byUid(uid) ?? {}, () => this.ledger.run(sql, to, time, uid, from)),
    );
  }

  /**
   * Records that the files exist. Not synced, because a session that is still `pending` after a power failure will find
   * its files.
   */
  markCreated(uid: string): void {
    this.#rows.clear();
    this.ledger.unsynced(() =>
      this.ledger.run(
        "UPDATE sessions SET state = 'live' WHERE uid = ? AND state IN ('pending', 'forking')",
        uid,
      ),
    );
  }

  /** Returns all of a user's sessions, in any state. */
  ofUser(userId: string | null): SessionRow[] {
    return this.#many("user = ?", userId ?? "");
  }

  trashedOf(userId: string | null): SessionRow[] {
    return this.#many("user = ? AND state = 'trashed'", userId ?? "");
  }

  /** Returns users with sessions in any state, in byte order. */
  users(after?: string | null, limit = -1): (string | null)[] {
    const from = after === undefined ? "" : "WHERE user > ?";
    return this.ledger
      .sql(`SELECT DISTINCT user FROM sessions ${from} ORDER BY user LIMIT ?`)
      .all(...(after === undefined ? [] : [after ?? ""]), limit)
      .map(({ user }) => (user === "" ? null : String(user)));
  }

  /**
   * Returns the agents that have sessions for a user. Reads one row per agent, regardless of the number of sessions.
   */
  agentIdsOf(userId: string | null): string[] {
    const sql = `SELECT agent, key FROM sessions WHERE user = ? AND key > ? AND ${isNamed} ORDER BY key LIMIT 1`;
    const found = new Set<string>();
    for (let after = ""; ; ) {
      const row = this.ledger.sql(sql).get(userId ?? "", after);
      if (row === undefined) return [...found].toSorted();
      const [agentId, key] = [String(row.agent), String(row.key)];
      const prefix = `agent:${agentId}:`;
      found.add(agentId);
      // ";" is the character after ":", so the next row is the first key of another agent.
      after = key.startsWith(prefix) ? `agent:${agentId};` : key;
    }
  }

  /** Counts the sessions that other users have in a folder. */
  countOtherUsers(home: string, userId: string | null): number {
    const sql = "SELECT count(*) AS count FROM sessions WHERE home = ? AND user <> ?";
    return Number(this.ledger.sql(sql).get(home, userId ?? "")?.count);
  }

  live(): SessionRow[] {
    return this.#many("state IN ('pending', 'live')");
  }

  /**
   * Deletes rows and leaves a tombstone without content. With `userId`, that user's run state is also deleted, unless
   * the user has other sessions.
   */
  forget(uids: readonly string[], tombstone: Tombstone, userId?: string): void {
    this.#claiming(uids, () => {
      for (const uid of uids) this.ledger.run("DELETE FROM sessions WHERE uid = ?", uid);
      const isUserGone = userId !== undefined && this.ofUser(userId).length === 0;
      this.#run(this.#attendant.purge(uids, isUserGone ? userId : undefined));
      this.addTombstone(tombstone);
      this.requestErase();
    });
  }

  addTombstone({ what, name, at }: Tombstone): void {
    this.ledger.run("INSERT INTO tombstones (what, name, at) VALUES (?, ?, ?)", what, name, at);
  }

  /** Removes redacted text from run state and from display names derived from it. */
  redact(userId: string | null, removed: RemovedEntries): void {
    this.#claiming([], () => {
      this.#run(this.#attendant.redact(removed));
      for (const { uid, first } of this.ofUser(userId)) {
        const meta = withoutDisplayName(first.meta, removed.texts);
        if (meta === null) continue;
        this.ledger.run(
          "UPDATE sessions SET first = ? WHERE uid = ?",
          JSON.stringify({ ...first, meta }),
          uid,
        );
      }
      this.requestErase();
    });
  }

  /**
   * Returns the token of the last removal whose bytes might still be in the database files, or `null` if there is none.
   */
  pendingErase(): string | null {
    const row = this.ledger.sql("SELECT value FROM facts WHERE name = 'erase'").get();
    return row === undefined ? null : String(row.value);
  }

  /** Records that the bytes have been erased, unless something else has been removed since. */
  finishErase(request: string): void {
    this.ledger.run("DELETE FROM facts WHERE name = 'erase' AND value = ?", request);
  }

  requestErase(): void {
    this.ledger.run("INSERT OR REPLACE INTO facts (name, value) VALUES ('erase', hex(randomblob(16)))");
  }

  inState(state: SessionState): SessionRow[] {
    return this.#many("state = ?", state);
  }

  byId(userId: string | null, sessionId: string): SessionRow | null {
    this.#follow();
    const name = `${userId ?? ""}\n${sessionId}`;
    const known = this.#rows.get(name);
    if (known !== undefined) return known;
    const row = this.#one("user = ? AND session_id = ? COLLATE NOCASE", userId ?? "", sessionId);
    this.#rows.set(name, row);
    return row;
  }

  /** Returns the row as the current transaction sees it. Not cached, because the transaction can be rolled back. */
  visibleById(userId: string | null, sessionId: string): SessionRow | null {
    const where = "user = ? AND session_id = ? COLLATE NOCASE AND state IN ('pending', 'live')";
    return this.#one(where, userId ?? "", sessionId);
  }

  /** Returns the cached row, which might be outdated. */
  lastKnown(userId: string | null, sessionId: string): SessionRow | null {
    return this.#rows.get(`${userId ?? ""}\n${sessionId}`) ?? null;
  }

  /**
   * Drops the claim of a session that was never created. If another process has since created the session, the claim is
   * kept.
   */
  release(uid: string): void {
    this.#claiming([uid], () =>
      this.ledger.run("DELETE FROM sessions WHERE uid = ? AND state IN ('pending', 'forking')", uid),
    );
  }

  byUids(uids: readonly string[]): SessionRow[] {
    return this.#many("uid IN (SELECT value FROM json_each(?))", JSON.stringify(uids));
  }

  byUid(uid: string): SessionRow | null {
    return this.#one("uid = ?", uid);
  }

  /** Also caches the row by its session ID, which callers usually look up next. */
  byKey(userId: string | null, key: string): SessionRow | null {
    const isRemembered = !this.ledger.isInTransaction;
    if (isRemembered) this.#follow();
    const row = this.#one(`user = ? AND key = ? AND ${isNamed}`, userId ?? "", key);
    if (isRemembered && row !== null) this.#rows.set(`${userId ?? ""}\n${row.sessionId}`, row);
    return row;
  }

  /** Returns the session that currently has a key or session ID. */
  findRef(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): SessionRef | null {
    const row = "key" in by ? this.byKey(userId, by.key) : this.visibleById(userId, by.sessionId);
    return row === null ? null : sessionRefOf(row);
  }

  readonly locate: StoreWork["locate"] = async (userId, key) => this.findRef(userId, { key });

  byLabel(userId: string | null, agentId: string, label: string): SessionRow | null {
    return this.#one(`user = ? AND agent = ? AND label = ? AND ${isNamed}`, userId ?? "", agentId, label);
  }

  bySpawnId(userId: string | null, spawnId: string): SessionRow[] {
    return this.#many(
      "user = ? AND state IN ('pending', 'live') AND key GLOB 'agent:*:subagent:*' AND substr(key, -length(?)) = ?",
      userId ?? "",
      `:${spawnId}`,
      `:${spawnId}`,
    );
  }

  byIdPrefix(userId: string | null, prefix: string): SessionRow[] {
    return this.#many(
      "user = ? AND state IN ('pending', 'live') AND substr(session_id, 1, length(?)) = ?",
      userId ?? "",
      prefix,
      prefix,
    );
  }

  /** Whether the database is new and therefore does not list the logs in the folder yet. */
  isNew(): boolean {
    return this.ledger.sql("SELECT 1 FROM facts WHERE name = 'begun'").get() === undefined;
  }

  begin(time: number): void {
    this.ledger.run("INSERT OR IGNORE INTO facts (name, value) VALUES ('begun', ?)", String(time));
  }

  /**
   * Marks every session if the index is empty or if the marks belong to a different index. Returns `true` if it
   * replaced another index. If no session needs to be marked, nothing is written, so a folder can be opened on a full
   * disk.
   */
  registerIndex(identity: string, isEmpty: boolean): boolean {
    const known = this.ledger.sql("SELECT value FROM facts WHERE name = 'index'").get()?.value;
    const unmarked = "SELECT 1 FROM sessions WHERE uid NOT IN (SELECT uid FROM dirty) LIMIT 1";
    if (known === identity && (!isEmpty || this.ledger.sql(unmarked).get() === undefined)) return false;
    this.exclusively(() => {
      this.ledger.run("INSERT OR IGNORE INTO dirty (uid) SELECT uid FROM sessions");
      this.ledger.run("INSERT OR REPLACE INTO facts (name, value) VALUES ('index', ?)", identity);
    });
    return known !== undefined && known !== identity;
  }

  /** Returns the most recent losses in this database and the ones it replaced. */
  losses(): Loss[] {
    const value = this.ledger.sql("SELECT value FROM facts WHERE name = 'losses'").get()?.value;
    return value === undefined ? [] : (JSON.parse(String(value)) as Loss[]);
  }

  recordLoss(loss: Loss): void {
    this.exclusively(() => this.#putLosses([...this.losses(), loss].slice(-mostLosses)));
  }

  /** Returns losses that have not been reported yet, and marks them as reported. */
  takeUntoldLosses(): string[] {
    const untold = this.losses().filter(({ isTold }) => !isTold);
    if (untold.length > 0)
      this.exclusively(() => this.#putLosses(this.losses().map((loss) => ({ ...loss, isTold: true }))));
    return untold.map(({ note }) => note);
  }

  #putLosses(losses: readonly Loss[]): void {
    const sql = "INSERT OR REPLACE INTO facts (name, value) VALUES ('losses', ?)";
    this.ledger.run(sql, JSON.stringify(losses));
  }

  /** Marks a session whose index data might be outdated. */
  markDirty(uid: string): void {
    this.ledger.run("INSERT OR IGNORE INTO dirty (uid) VALUES (?)", uid);
  }

  isBehind(): boolean {
    return this.ledger.sql("SELECT 1 FROM dirty LIMIT 1").get() !== undefined;
  }

  dirty(): string[] {
    return this.ledger
      .sql("SELECT uid FROM dirty")
      .all()
      .map((row) => String(row.uid));
  }

  /** Removes marks while no other process can write. Not synced, because a removal that is lost will be repeated. */
  clearDirty(uids: readonly string[], isSettled: (uid: string) => boolean): void {
    this.ledger.unsynced(() =>
      this.exclusively(() => {
        for (const uid of uids) if (isSettled(uid)) this.ledger.run("DELETE FROM dirty WHERE uid = ?", uid);
      }),
    );
  }

  countDirty(): number {
    return Number(this.ledger.sql("SELECT count(*) AS count FROM dirty").get()?.count);
  }

  inFolder(home: string, agentId: string, sessionId: string): SessionRow | null {
    return this.#one("home = ? AND agent = ? AND session_id = ? COLLATE NOCASE", home, agentId, sessionId);
  }

  /** Runs `act` in a transaction that excludes all other writers. */
  exclusively<T>(act: () => T): T {
    return this.ledger.exclusively(act);
  }

  close(): void {
    this.ledger.close();
  }

  /** Runs a script in the current transaction. */
  #run<T>(script: Script<T>): T {
    return runOn(this.ledger, script);
  }

  get #attendant(): WorkAttendant {
    return this.attendance.attendant;
  }

  /** Drops cached rows that another connection might have changed. */
  #follow(): void {
    const version = this.ledger.changesByOthers();
    if (version !== this.#dataVersion || this.#rows.size >= mostRows) this.#rows.clear();
    this.#dataVersion = version;
  }

  #insert(row: SessionRow): void {
    const { uid, userId, agentId, key, sessionId, label, createdAt, state, home, first } = row;
    const values = [uid, userId ?? "", agentId, key, sessionId, label, createdAt, state, home];
    const todo = row.todo === null ? null : JSON.stringify(row.todo);
    const sql = `INSERT INTO sessions (${sessionColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
    orTaken(row, () => this.ledger.run(sql, ...values, JSON.stringify(first), row.removedAt, todo));
  }

  #one(where: string, ...values: string[]): SessionRow | null {
    return this.#many(where, ...values)[0] ?? null;
  }

  #many(where: string, ...values: string[]): SessionRow[] {
    return this.ledger
      .sql(`SELECT ${sessionColumns} FROM sessions WHERE ${where}`)
      .all(...values)
      .map(readSessionRow);
  }

  /** Changes claims and marks the sessions for the index in one transaction. */
  #claiming(uids: readonly string[], act: () => unknown): void {
    this.#rows.clear();
    this.exclusively(() => {
      act();
      for (const uid of uids) this.markDirty(uid);
    });
  }
}

/** Turns a violated unique index into a `conflict` that names the value. */
function orTaken<T>(names: Partial<Omit<SessionRow, "label">> & { label?: unknown }, change: () => T): T {
  try {
    return change();
  } catch (error) {
    const column = /UNIQUE constraint failed: .*sessions\.(\w+)$/.exec((error as Error).message)?.[1];
    if (column === "key") return throwTaken("session key", names.key ?? "", error);
    if (column === "session_id") return throwTaken("session ID", names.sessionId ?? "", error);
    if (column === "label") return throwTaken("label", String(names.label), error);
    if (column === "uid") return throwTaken("uid", names.uid ?? "", error);
    throw error;
  }
}

export function readSessionRow(row: Record<string, unknown>): SessionRow {
  return {
    uid: String(row.uid),
    agentId: String(row.agent),
    sessionId: String(row.session_id),
    state: String(row.state) as SessionState,
    home: String(row.home),
    userId: row.user === "" ? null : String(row.user),
    key: String(row.key),
    label: row.label === null ? null : String(row.label),
    createdAt: Number(row.created_at),
    removedAt: row.removed_at === null ? null : Number(row.removed_at),
    todo: row.todo === null ? null : (JSON.parse(String(row.todo)) as MetaPatch),
    first: JSON.parse(String(row.first)) as SessionRow["first"],
  };
}
