import { decideAnew, SkeinError } from "../../core/errors.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { sessionRefOf } from "../../core/session-ref.ts";
import type { RemovedEntries, TellLater, WorkAttendant } from "../../runs/contract.ts";
import type { MetaPatch, SessionMeta } from "../contract.ts";
import { withoutDisplayName } from "../redact.ts";
import { taken } from "../rules.ts";
import { Attendance } from "../work.ts";
import { Database } from "./database.ts";
import type { ProcessIdentity } from "./process-identity.ts";

/**
 * `work.db`: what is not conversation and must not be lost. Here: which session has which key, id and label. Every
 * commit is synced. A session's row carries all that its log begins with, so that a crash after the commit costs nothing.
 */

/**
 * `pending`: accepted, its files are made at first use. `forking`: its files are being made, and nobody sees it until
 * then. `live`. `trashed`.
 */
export type SessionState = "pending" | "forking" | "live" | "trashed";

/** Whether a session is there for those who ask. */
export function isThere(row: SessionRow): boolean {
  return row.state === "pending" || row.state === "live";
}

/** What says where a session's files are. */
export interface SessionPlace extends Pick<SessionRef, "uid" | "agentId" | "sessionId"> {
  readonly state: SessionState;
  /** The folder of the user, from the root on, with slashes; empty for the unnamed one. */
  readonly home: string;
}

export interface SessionRow extends SessionPlace, SessionRef {
  readonly label: string | null;
  readonly createdAt: number;
  /** When it went into the trash. */
  readonly removedAt: number | null;
  /** A change of metadata that is decided and not yet in the log. */
  readonly todo: MetaPatch | null;
  /** First values: what the log's header says. */
  readonly first: {
    readonly cwd: string;
    readonly meta: SessionMeta;
    readonly parentSession?: string;
    /** Who makes the files of a session that is `forking`. */
    readonly maker?: ProcessIdentity;
    /** Since when: it may be a session that began long ago. */
    readonly claimedAt?: number;
  };
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

/** Something that was lost with a database. */
interface Loss {
  readonly at: number;
  readonly note: string;
  /** Whether a start has said so. */
  readonly isTold: boolean;
}

const mostLosses = 10;
const mostRows = 10_000;
const columns = "uid, user, agent, key, session_id, label, created_at, state, home, first, removed_at, todo";
/** The first half says nothing new: without it the indexes of names are not used, and a name is looked for in every session. */
const isNamed = "state <> 'trashed' AND state IN ('pending', 'live')";

export class WorkDb {
  /** Whoever works on the sessions; asked within the transactions that change them. */
  readonly attendance = new Attendance();
  readonly #db: Database;
  /** Rows by user and session id, as long as nobody has changed anything. */
  readonly #rows = new Map<string, SessionRow | null>();
  #dataVersion = 0;

  readonly path: string;

  constructor(path: string) {
    this.path = path;
    const pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;";
    this.#db = new Database(path, pragmas, migrations, { isPinned: true });
  }

  /** Which file it is, by device and inode. */
  get identity(): string {
    return this.#db.identity;
  }

  /** The database itself, for the work that hangs on sessions and changes with them. */
  get ledger(): Database {
    return this.#db;
  }

  /** Takes key, id and label for a new session; `conflict` when one is taken. */
  claim(row: SessionRow): void {
    this.#claiming([row.uid], () => this.#insert(row));
  }

  /** The same, with what is done in the same transaction: neither happens without the other. */
  claimWith(row: SessionRow, act: () => TellLater): TellLater {
    let tell: TellLater = () => undefined;
    this.#claiming([row.uid], () => {
      this.#insert(row);
      tell = act();
    });
    return tell;
  }

  /** For good, and at once: the old session has another key, with the change to be told to its log; a new one has its. */
  reset(uid: string, change: MetaPatch & { readonly key: string }, fresh: SessionRow, isOwner = false): void {
    let tell: TellLater = () => undefined;
    this.#claiming([uid, fresh.uid], () => {
      const old = this.byUid(uid);
      if (old !== null) tell = this.#attendant.reset(sessionRefOf(old), sessionRefOf(fresh), isOwner);
      const sql = "UPDATE sessions SET key = ?, label = NULL, todo = ? WHERE uid = ? AND key = ?";
      const { changes } = orTaken(change, () =>
        this.#db.run(sql, change.key, JSON.stringify(change), uid, fresh.key),
      );
      if (Number(changes) === 0) {
        throw new SkeinError("conflict", {
          problem: `The session with the key ${fresh.key} is another one now`,
          advice: decideAnew,
        });
      }
      this.#insert(fresh);
    });
    tell();
  }

  /** Into the trash, with its work: what it has not read of others goes to the session that spawned it. */
  trash(row: SessionRow, spawnedBy: string | undefined, time: number): void {
    let tell: TellLater = () => undefined;
    this.exclusively(() => {
      const parent = spawnedBy === undefined ? null : this.byKey(row.userId, spawnedBy);
      tell = this.#attendant.remove(sessionRefOf(row), parent === null ? null : sessionRefOf(parent));
      this.move(row.uid, "live", "trashed", time);
    });
    tell();
  }

  /** Rows whose log has not been told of a change yet. */
  withTodo(): SessionRow[] {
    return this.#many("todo IS NOT NULL");
  }

  todoDone(uid: string): void {
    this.#claiming([uid], () => this.#db.run("UPDATE sessions SET todo = NULL WHERE uid = ?", uid));
  }

  claimLabel(uid: string, label: string | null): void {
    const sql = "UPDATE sessions SET label = ? WHERE uid = ?";
    this.#claiming([uid], () => orTaken({ label }, () => this.#db.run(sql, label, uid)));
  }

  /**
   * From one state to another, if it is still in the first. Out of the trash it is a `conflict` when its key or label has
   * been taken since.
   */
  move(uid: string, from: SessionState, to: SessionState, time: number | null = null): void {
    const sql = "UPDATE sessions SET state = ?, removed_at = ? WHERE uid = ? AND state = ?";
    this.#claiming([uid], () => orTaken(this.byUid(uid) ?? {}, () => this.#db.run(sql, to, time, uid, from)));
  }

  /** Its files are made. Where somebody took us for dead and gave its names back, they are taken again. */
  finishFork(row: SessionRow): void {
    this.exclusively(() => {
      if (this.byUid(row.uid) === null) this.claim({ ...row, state: "live" });
      else this.move(row.uid, "forking", "live");
    });
  }

  /** Its files are made. Not synced: one that is still pending after a power cut finds them there. */
  made(uid: string): void {
    this.#rows.clear();
    this.#db.unsynced(() =>
      this.#db.run(
        "UPDATE sessions SET state = 'live' WHERE uid = ? AND state IN ('pending', 'forking')",
        uid,
      ),
    );
  }

  /** Every session of a user, in whatever state. */
  ofUser(userId: string | null): SessionRow[] {
    return this.#many("user = ?", userId ?? "");
  }

  /** Those of them that are in the trash. */
  trashedOf(userId: string | null): SessionRow[] {
    return this.#many("user = ? AND state = 'trashed'", userId ?? "");
  }

  /** Whose sessions are here, in whatever state, in the order of their bytes. `after` left out: from the first; `limit`: all. */
  users(after?: string | null, limit = -1): (string | null)[] {
    const from = after === undefined ? "" : "WHERE user > ?";
    return this.#db
      .sql(`SELECT DISTINCT user FROM sessions ${from} ORDER BY user LIMIT ?`)
      .all(...(after === undefined ? [] : [after ?? ""]), limit)
      .map(({ user }) => (user === "" ? null : String(user)));
  }

  /** The agents that have sessions of a user. Reads one row for each agent, however many sessions there are. */
  agentIdsOf(userId: string | null): string[] {
    const sql = `SELECT agent, key FROM sessions WHERE user = ? AND key > ? AND ${isNamed} ORDER BY key LIMIT 1`;
    const found = new Set<string>();
    for (let after = ""; ; ) {
      const row = this.#db.sql(sql).get(userId ?? "", after);
      if (row === undefined) return [...found].toSorted();
      const [agentId, key] = [String(row.agent), String(row.key)];
      const prefix = `agent:${agentId}:`;
      found.add(agentId);
      // ";" is the character after ":": the next row is the first key of another agent.
      after = key.startsWith(prefix) ? `agent:${agentId};` : key;
    }
  }

  /** How many sessions other users have in a folder. */
  othersIn(home: string, userId: string | null): number {
    const sql = "SELECT count(*) AS count FROM sessions WHERE home = ? AND user <> ?";
    return Number(this.#db.sql(sql).get(home, userId ?? "")?.count);
  }

  /** Every session in the store that is there. */
  live(): SessionRow[] {
    return this.#many("state IN ('pending', 'live')");
  }

  /**
   * Forgets sessions for good, and leaves word of it that says nothing of what they were. With a user, whatever else is kept
   * under that name goes too, unless the user has sessions that are not among these.
   */
  forget(
    uids: readonly string[],
    tombstone: { readonly what: string; readonly name: string; readonly at: number },
    userId?: string,
  ): void {
    this.#claiming(uids, () => {
      for (const uid of uids) this.#db.run("DELETE FROM sessions WHERE uid = ?", uid);
      const isUserGone = userId !== undefined && this.ofUser(userId).length === 0;
      this.#attendant.purge(uids, isUserGone ? userId : undefined);
      const { what, name, at } = tombstone;
      this.#db.run("INSERT INTO tombstones (what, name, at) VALUES (?, ?, ?)", what, name, at);
      this.requestErase();
    });
  }

  /** Takes what redacted entries said out of the work of these sessions, and out of names that were made from it. */
  redact(userId: string | null, removed: RemovedEntries): void {
    this.#claiming([], () => {
      this.#attendant.redact(removed);
      for (const { uid, first } of this.ofUser(userId)) {
        const meta = withoutDisplayName(first.meta, removed.texts);
        if (meta === null) continue;
        this.#db.run("UPDATE sessions SET first = ? WHERE uid = ?", JSON.stringify({ ...first, meta }), uid);
      }
      this.requestErase();
    });
  }

  /** Files that sessions were handed, for those who are about to forget them. */
  discardFiles(of: Parameters<WorkAttendant["discardFiles"]>[0]): Promise<void> {
    return this.#attendant.discardFiles(of);
  }

  isBlobInUse(sha256: string): boolean {
    return this.#attendant.isBlobInUse(sha256);
  }

  /** Names the last removal whose bytes may still be in the databases' files; `null`: there is none. */
  pendingErase(): string | null {
    const row = this.#db.sql("SELECT value FROM facts WHERE name = 'erase'").get();
    return row === undefined ? null : String(row.value);
  }

  /** The bytes are gone, unless something else was removed meanwhile. */
  erased(request: string): void {
    this.#db.run("DELETE FROM facts WHERE name = 'erase' AND value = ?", request);
  }

  /** Rewrites the file, without its free pages and what is left over inside of others. `false`: a reader stood in the way. */
  scrub(): boolean {
    return this.#db.scrub();
  }

  requestErase(): void {
    this.#db.run("INSERT OR REPLACE INTO facts (name, value) VALUES ('erase', hex(randomblob(16)))");
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

  /** The session that is there under an id, as the transaction under way has it: not remembered, it may be taken back. */
  thereById(userId: string | null, sessionId: string): SessionRow | null {
    const where = "user = ? AND session_id = ? COLLATE NOCASE AND state IN ('pending', 'live')";
    return this.#one(where, userId ?? "", sessionId);
  }

  /** The row as it was last read, whatever others have done since. */
  lastKnown(userId: string | null, sessionId: string): SessionRow | null {
    return this.#rows.get(`${userId ?? ""}\n${sessionId}`) ?? null;
  }

  /** A number that moves when another connection has changed something; our own changes do not move it. */
  changesByOthers(): number {
    return this.#db.changesByOthers();
  }

  /** Another text once anybody has changed something; `null` within a transaction. */
  changeMark(): string | null {
    return this.#db.changeMark();
  }

  /** Gives back what a session took that never came to be; one that somebody else has made meanwhile stays. */
  release(uid: string): void {
    this.#claiming([uid], () =>
      this.#db.run("DELETE FROM sessions WHERE uid = ? AND state IN ('pending', 'forking')", uid),
    );
  }

  /** Where the files of these are, by one question and as anybody last changed it. */
  placesOf(uids: readonly string[]): SessionPlace[] {
    return this.#db
      .sql(
        `SELECT uid, agent, session_id, state, home FROM sessions
         WHERE uid IN (SELECT value FROM json_each(?))`,
      )
      .all(JSON.stringify(uids))
      .map(placeOf);
  }

  byUid(uid: string): SessionRow | null {
    return this.#one("uid = ?", uid);
  }

  /** Whoever looks for a key asks for the id that it leads to next. */
  byKey(userId: string | null, key: string): SessionRow | null {
    const isRemembered = !this.#db.isInTransaction;
    if (isRemembered) this.#follow();
    const row = this.#one(`user = ? AND key = ? AND ${isNamed}`, userId ?? "", key);
    if (isRemembered && row !== null) this.#rows.set(`${userId ?? ""}\n${row.sessionId}`, row);
    return row;
  }

  byLabel(userId: string | null, agentId: string, label: string): SessionRow | null {
    return this.#one(`user = ? AND agent = ? AND label = ? AND ${isNamed}`, userId ?? "", agentId, label);
  }

  /** Live sessions whose key ends in this spawn id. */
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

  /** Whether it was made just now, and knows nothing of the logs that may be there. */
  isNew(): boolean {
    return this.#db.sql("SELECT 1 FROM facts WHERE name = 'begun'").get() === undefined;
  }

  begin(time: number): void {
    this.#db.run("INSERT OR IGNORE INTO facts (name, value) VALUES ('begun', ?)", String(time));
  }

  /**
   * Whose marks these are: for an index that has none of them, or is another one, everything is marked. `true`: it has taken
   * the place of another one. Nothing is written where nothing is to be marked: a folder is opened on a full disk too.
   */
  knowIndex(identity: string, isEmpty: boolean): boolean {
    const known = this.#db.sql("SELECT value FROM facts WHERE name = 'index'").get()?.value;
    const unmarked = "SELECT 1 FROM sessions WHERE uid NOT IN (SELECT uid FROM dirty) LIMIT 1";
    if (known === identity && (!isEmpty || this.#db.sql(unmarked).get() === undefined)) return false;
    this.exclusively(() => {
      this.markAllDirty();
      this.#db.run("INSERT OR REPLACE INTO facts (name, value) VALUES ('index', ?)", identity);
    });
    return known !== undefined && known !== identity;
  }

  /** What was lost of this database or the one before it, the last few times. */
  losses(): Loss[] {
    const value = this.#db.sql("SELECT value FROM facts WHERE name = 'losses'").get()?.value;
    return value === undefined ? [] : (JSON.parse(String(value)) as Loss[]);
  }

  recordLoss(loss: Loss): void {
    this.exclusively(() => this.#putLosses([...this.losses(), loss].slice(-mostLosses)));
  }

  /** The notes that no start has told yet; from now on they count as told. */
  takeUntoldLosses(): string[] {
    const untold = this.losses().filter(({ isTold }) => !isTold);
    if (untold.length > 0)
      this.exclusively(() => this.#putLosses(this.losses().map((loss) => ({ ...loss, isTold: true }))));
    return untold.map(({ note }) => note);
  }

  #putLosses(losses: readonly Loss[]): void {
    const sql = "INSERT OR REPLACE INTO facts (name, value) VALUES ('losses', ?)";
    this.#db.run(sql, JSON.stringify(losses));
  }

  /** For an index that has to be made anew. */
  markAllDirty(): void {
    this.#db.run("INSERT OR IGNORE INTO dirty (uid) SELECT uid FROM sessions");
  }

  /** Marks a session whose index may fall behind. */
  markDirty(uid: string): void {
    this.#db.run("INSERT OR IGNORE INTO dirty (uid) VALUES (?)", uid);
  }

  isBehind(): boolean {
    return this.#db.sql("SELECT 1 FROM dirty LIMIT 1").get() !== undefined;
  }

  dirty(): string[] {
    return this.#db
      .sql("SELECT uid FROM dirty")
      .all()
      .map((row) => String(row.uid));
  }

  /** Takes marks away, of those for which that is still right while nobody can write here. Lost, it is done again. */
  clearDirty(uids: readonly string[], isSettled: (uid: string) => boolean): void {
    this.#db.unsynced(() =>
      this.exclusively(() => {
        for (const uid of uids) if (isSettled(uid)) this.#db.run("DELETE FROM dirty WHERE uid = ?", uid);
      }),
    );
  }

  /** How many sessions are marked. */
  countDirty(): number {
    return Number(this.#db.sql("SELECT count(*) AS count FROM dirty").get()?.count);
  }

  /** The session whose files are these. */
  inFolder(home: string, agentId: string, sessionId: string): SessionRow | null {
    return this.#one("home = ? AND agent = ? AND session_id = ? COLLATE NOCASE", home, agentId, sessionId);
  }

  problem(): string | null {
    return this.#db.problem("integrity_check");
  }

  /** What a statement found damaged; `null`: nothing so far. */
  get damage(): string | null {
    return this.#db.damage;
  }

  /** Throws `unavailable` once the file is no longer at its path. */
  checkInPlace(): void {
    this.#db.checkInPlace();
  }

  isInPlace(): boolean {
    return this.#db.isInPlace();
  }

  isLocked(): boolean {
    return this.#db.isLocked();
  }

  /** Runs alone among all processes that have this database. */
  exclusively<T>(act: () => T): T {
    return this.#db.exclusively(act);
  }

  close(): void {
    this.#db.close();
  }

  get #attendant(): WorkAttendant {
    return this.attendance.attendant;
  }

  /** Forgets rows that others may have changed. */
  #follow(): void {
    const version = this.changesByOthers();
    if (version !== this.#dataVersion || this.#rows.size >= mostRows) this.#rows.clear();
    this.#dataVersion = version;
  }

  #insert(row: SessionRow): void {
    const { uid, userId, agentId, key, sessionId, label, createdAt, state, home, first } = row;
    const values = [uid, userId ?? "", agentId, key, sessionId, label, createdAt, state, home];
    const todo = row.todo === null ? null : JSON.stringify(row.todo);
    const sql = `INSERT INTO sessions (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
    orTaken(row, () => this.#db.run(sql, ...values, JSON.stringify(first), row.removedAt, todo));
  }

  #one(where: string, ...values: string[]): SessionRow | null {
    return this.#many(where, ...values)[0] ?? null;
  }

  #many(where: string, ...values: string[]): SessionRow[] {
    return this.#db
      .sql(`SELECT ${columns} FROM sessions WHERE ${where}`)
      .all(...values)
      .map(rowOf);
  }

  /** Changes what is taken, and marks the session for the index, in one transaction. */
  #claiming(uids: readonly string[], act: () => unknown): void {
    this.#rows.clear();
    this.exclusively(() => {
      act();
      for (const uid of uids) this.markDirty(uid);
    });
  }
}

/** Makes a change; where a name is another session's, `conflict` says which. */
function orTaken<T>(names: Partial<Omit<SessionRow, "label">> & { label?: unknown }, change: () => T): T {
  try {
    return change();
  } catch (error) {
    const column = /UNIQUE constraint failed: .*sessions\.(\w+)$/.exec((error as Error).message)?.[1];
    if (column === "key") return taken("session key", names.key ?? "", error);
    if (column === "session_id") return taken("session id", names.sessionId ?? "", error);
    if (column === "label") return taken("label", String(names.label), error);
    if (column === "uid") return taken("uid", names.uid ?? "", error);
    throw error;
  }
}

function placeOf(row: Record<string, unknown>): SessionPlace {
  return {
    uid: String(row.uid),
    agentId: String(row.agent),
    sessionId: String(row.session_id),
    state: String(row.state) as SessionState,
    home: String(row.home),
  };
}

function rowOf(row: Record<string, unknown>): SessionRow {
  return {
    ...placeOf(row),
    userId: row.user === "" ? null : String(row.user),
    key: String(row.key),
    label: row.label === null ? null : String(row.label),
    createdAt: Number(row.created_at),
    removedAt: row.removed_at === null ? null : Number(row.removed_at),
    todo: row.todo === null ? null : (JSON.parse(String(row.todo)) as MetaPatch),
    first: JSON.parse(String(row.first)) as SessionRow["first"],
  };
}
