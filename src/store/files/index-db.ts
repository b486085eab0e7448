import { createHash } from "node:crypto";
import type { SessionHeader } from "../../core/entries.ts";
import type { ListedSession, SessionDigest, SessionMeta } from "../contract.ts";
import { toTokenCount } from "../digest.ts";
import { channelOf, namesOf } from "../list-query.ts";
import type { TextWords } from "../search/words.ts";
import { codesOf } from "../search/words.ts";
import { Database, fileIdentity } from "./database.ts";
import { setAside } from "./recover.ts";

/**
 * `index.db`: the data for lists, pages and searches. It is derived from the logs and can be deleted at any time.
 * Commits are not synced, so a session stays marked in `work.db` until a checkpoint has synced its index data.
 */

const pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;";
/**
 * Indexes all sessions again. The new identity marks every session, and a session without its log's identity is indexed
 * from the start. Until then, searches use the session's old words.
 */
const indexAgain = "UPDATE sessions SET log_identity = ''; UPDATE identity SET value = hex(randomblob(16));";
export const indexSteps = [
  `CREATE TABLE sessions (
     uid TEXT PRIMARY KEY,
     user TEXT NOT NULL,
     agent TEXT NOT NULL,
     kind TEXT NOT NULL,
     special TEXT,
     label TEXT,
     archived INTEGER NOT NULL,
     spawned_by TEXT,
     updated_at INTEGER NOT NULL,
     names TEXT NOT NULL,
     home TEXT NOT NULL,
     record TEXT NOT NULL,
     log_bytes INTEGER NOT NULL,
     log_identity TEXT NOT NULL,
     fold TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX sessions_user ON sessions (user, archived, updated_at DESC, uid DESC);
   CREATE INDEX sessions_agent ON sessions (user, agent, archived, updated_at DESC, uid DESC);
   CREATE INDEX sessions_kind ON sessions (user, kind, archived, updated_at DESC, uid DESC);
   CREATE INDEX sessions_label ON sessions (user, label, archived, updated_at DESC, uid DESC) WHERE label IS NOT NULL;
   CREATE INDEX sessions_parent ON sessions (user, spawned_by, archived, updated_at DESC, uid DESC) WHERE spawned_by IS NOT NULL;
   CREATE INDEX sessions_home ON sessions (home, agent);
   CREATE TABLE entries (
     uid TEXT NOT NULL,
     entry_id TEXT NOT NULL,
     position INTEGER NOT NULL,
     offset INTEGER NOT NULL,
     length INTEGER NOT NULL,
     parent INTEGER,
     leaf INTEGER,
     state INTEGER NOT NULL,
     role TEXT NOT NULL,
     PRIMARY KEY (uid, entry_id)
   ) STRICT, WITHOUT ROWID;
   CREATE UNIQUE INDEX entries_position ON entries (uid, position, offset, length);
   CREATE TABLE states (
     uid TEXT NOT NULL, id INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (uid, id)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE blobs (
     uid TEXT NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (uid, sha256)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE said (
     id INTEGER PRIMARY KEY,
     uid TEXT NOT NULL,
     entry_id TEXT NOT NULL,
     role TEXT NOT NULL,
     time INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX said_session ON said (uid);
   CREATE VIRTUAL TABLE words USING fts5(
     scope, body, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 0 tokenchars '_'"
   );`,
  "CREATE TABLE identity (value TEXT NOT NULL) STRICT; INSERT INTO identity VALUES (hex(randomblob(16)));",
  // Finds descendants using indexes alone.
  `ALTER TABLE sessions ADD COLUMN key TEXT NOT NULL DEFAULT '';
   UPDATE sessions SET key = json_extract(record, '$.key');
   CREATE INDEX sessions_key ON sessions (user, key);
   CREATE INDEX sessions_lineage ON sessions (user, spawned_by, key) WHERE spawned_by IS NOT NULL;`,
  // Rows are long. In a table keyed by uid, they would be stored in inner pages, a few per page, and finding a row
  // would take many reads.
  `ALTER TABLE sessions RENAME TO sessions_by_uid;
   CREATE TABLE sessions (
     uid TEXT NOT NULL UNIQUE,
     user TEXT NOT NULL,
     agent TEXT NOT NULL,
     kind TEXT NOT NULL,
     special TEXT,
     label TEXT,
     archived INTEGER NOT NULL,
     spawned_by TEXT,
     updated_at INTEGER NOT NULL,
     names TEXT NOT NULL,
     home TEXT NOT NULL,
     record TEXT NOT NULL,
     log_bytes INTEGER NOT NULL,
     log_identity TEXT NOT NULL,
     fold TEXT NOT NULL,
     key TEXT NOT NULL
   ) STRICT;
   INSERT INTO sessions SELECT * FROM sessions_by_uid ORDER BY updated_at;
   DROP TABLE sessions_by_uid;
   CREATE INDEX sessions_user ON sessions (user, archived, updated_at DESC, uid DESC);
   CREATE INDEX sessions_agent ON sessions (user, agent, archived, updated_at DESC, uid DESC);
   CREATE INDEX sessions_kind ON sessions (user, kind, archived, updated_at DESC, uid DESC);
   CREATE INDEX sessions_label ON sessions (user, label, archived, updated_at DESC, uid DESC) WHERE label IS NOT NULL;
   CREATE INDEX sessions_parent ON sessions (user, spawned_by, archived, updated_at DESC, uid DESC) WHERE spawned_by IS NOT NULL;
   CREATE INDEX sessions_home ON sessions (home, agent, uid);
   CREATE INDEX sessions_key ON sessions (user, key, uid);
   CREATE INDEX sessions_lineage ON sessions (user, spawned_by, key) WHERE spawned_by IS NOT NULL;`,
  // For lists across all users.
  "CREATE INDEX sessions_all ON sessions (archived, updated_at DESC, uid DESC);",
  // For the forks of a session.
  `ALTER TABLE sessions ADD COLUMN forked_from TEXT
     GENERATED ALWAYS AS (json_extract(record, '$.meta.forkedFrom.sessionId')) VIRTUAL;
   CREATE INDEX sessions_forks ON sessions (user, forked_from, archived, updated_at DESC, uid DESC)
     WHERE forked_from IS NOT NULL;`,
  // For channels and for lists in other sort orders. With `special` at the end, a count can be answered from the index
  // alone.
  `ALTER TABLE sessions ADD COLUMN channel TEXT NOT NULL DEFAULT 'unknown';
   UPDATE sessions SET channel = channel_of(record);
   ALTER TABLE sessions ADD COLUMN created_at INTEGER
     GENERATED ALWAYS AS (json_extract(record, '$.createdAt')) VIRTUAL;
   ALTER TABLE sessions ADD COLUMN tokens INTEGER
     GENERATED ALWAYS AS (json_extract(record, '$.digest.totalTokens')) VIRTUAL;
   ALTER TABLE sessions ADD COLUMN cost INTEGER
     GENERATED ALWAYS AS (coalesce(CAST(json_extract(record, '$.digest.costUsd') * 1000000 AS INTEGER), -1)) VIRTUAL;
   ALTER TABLE sessions ADD COLUMN sort_name TEXT GENERATED ALWAYS AS (substr(lower(coalesce(
     json_extract(record, '$.meta.displayName'), json_extract(record, '$.name'), label, key)), 1, 100)) VIRTUAL;
   CREATE INDEX sessions_channel ON sessions (user, channel, archived, updated_at DESC, uid DESC);
   CREATE INDEX sessions_created ON sessions (user, archived, created_at DESC, uid DESC);
   CREATE INDEX sessions_tokens ON sessions (user, archived, tokens DESC, uid DESC);
   CREATE INDEX sessions_cost ON sessions (user, archived, cost DESC, uid DESC);
   CREATE INDEX sessions_name ON sessions (user, archived, sort_name, uid DESC);
   DROP INDEX sessions_user;
   DROP INDEX sessions_agent;
   DROP INDEX sessions_all;
   CREATE INDEX sessions_user ON sessions (user, archived, updated_at DESC, uid DESC, special);
   CREATE INDEX sessions_agent ON sessions (user, agent, archived, updated_at DESC, uid DESC, special);
   CREATE INDEX sessions_all ON sessions (archived, updated_at DESC, uid DESC, special);`,
  // Words are indexed by their stems, along with codes for counting them.
  `DROP TABLE words;
   DROP TABLE said;
   CREATE TABLE said (
     id INTEGER PRIMARY KEY,
     uid TEXT NOT NULL,
     entry_id TEXT NOT NULL,
     role TEXT NOT NULL,
     time INTEGER NOT NULL,
     length INTEGER NOT NULL,
     codes BLOB NOT NULL
   ) STRICT;
   CREATE INDEX said_session ON said (uid);
   CREATE TABLE said_totals (
     uid TEXT NOT NULL, role TEXT NOT NULL, entries INTEGER NOT NULL, PRIMARY KEY (uid, role)
   ) STRICT, WITHOUT ROWID;
   CREATE VIRTUAL TABLE words USING fts5(
     body, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_$'"
   );
   ${indexAgain}`,
  // The codes include marks for the kinds of answers in an entry.
  indexAgain,
  // With the names in the index, a list that is filtered by text reads only the matching rows.
  `DROP INDEX sessions_user;
   DROP INDEX sessions_agent;
   CREATE INDEX sessions_user ON sessions (user, archived, updated_at DESC, uid DESC, special, names);
   CREATE INDEX sessions_agent ON sessions (user, agent, archived, updated_at DESC, uid DESC, special, names);`,
  "CREATE TABLE embeddings (id INTEGER PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL) STRICT;",
];

/** Functions for migrations. */
const functions = {
  channel_of: (record: string) => channelOf({ key: "", meta: {}, ...(JSON.parse(record) as object) }),
};

/** A session's indexed state: everything needed to continue indexing its log. */
export interface IndexState {
  readonly header: SessionHeader | null;
  readonly meta: SessionMeta;
  readonly version: number;
  readonly key: string | null;
  readonly name: string | null;
  /** Time of the last conversation entry, or 0 if there is none yet. */
  readonly saidAt: number;
  readonly digest: SessionDigest;
  readonly tip: PlacedEntry | null;
  /** The last entry in the log. */
  readonly last: PlacedEntry | null;
  readonly leafId: string | null;
  /** From here on, each entry's parent is the entry before it, and the last entry is the tip. */
  readonly chain: { readonly offset: number; readonly position: number };
  /** `true` if parents had to be guessed or dropped, in which case only the whole log defines the tree. */
  readonly isOdd: boolean;
  readonly states: number;
}

/** An entry that can be the parent of later entries. */
export interface PlacedEntry {
  readonly id: string;
  readonly position: number;
  /** The position of the nearest conversation entry, starting here and going up. */
  readonly leaf: number | null;
  readonly state: number;
}

/** How much of a session is indexed. */
export interface Known {
  readonly logBytes: number;
  readonly identity: string;
  readonly fold: IndexState;
}

export interface IndexedPlace {
  readonly position: number;
  readonly offset: number;
  readonly length: number;
}

/** A line of the log with its index data. */
export interface IndexedEntry extends IndexedPlace {
  readonly id: string;
  readonly parent: number | null;
  readonly leaf: number | null;
  readonly state: number;
  readonly role: string;
  readonly time: number;
  /** `null` if the entry is not searchable. */
  readonly text: TextWords | null;
  readonly blobs: readonly string[];
}

export class IndexDb {
  readonly #path: string;
  #db: Database;
  #file: string | null;
  #opened = 0;
  readonly #whenCreated: () => void;

  /** `whenCreated` throws if the file must not exist because its folder has been moved or deleted. */
  constructor(path: string, whenCreated: () => void = () => undefined, verify = false) {
    this.#path = path;
    this.#whenCreated = whenCreated;
    this.#db = new Database(path, pragmas, indexSteps, { verify, whenCreated, functions });
    this.#file = fileIdentity(path);
  }

  /** How many times the file has been replaced. */
  get opened(): number {
    return this.#opened;
  }

  get db(): Database {
    return this.#db;
  }

  /** A random ID that changes when the index is replaced. */
  get identity(): string {
    return String(this.db.sql("SELECT value FROM identity").get()?.value);
  }

  /**
   * Reopens the file at its path, recreating it if it is missing or damaged. Returns `false` if it is still the same
   * file.
   */
  followName(): boolean {
    const isSame = fileIdentity(this.#path) === this.#file && this.#file !== null;
    if (isSame && this.#db.damage === null) return false;
    if (isSame) setAside(this.#path, Date.now(), String(this.#db.damage), () => undefined);
    const whenCreated = this.#whenCreated;
    const made = new Database(this.#path, pragmas, indexSteps, { whenCreated, functions });
    this.#db.close();
    this.#db = made;
    this.#opened += 1;
    this.#file = fileIdentity(this.#path);
    return true;
  }

  /** Runs `act` in a transaction that excludes all other writers. */
  exclusively<T>(act: () => T): T {
    return this.db.exclusively(act);
  }

  isEmpty(): boolean {
    return this.db.sql("SELECT 1 FROM sessions LIMIT 1").get() === undefined;
  }

  /** Returns `null` if the session is not indexed. */
  known(uid: string): Known | null {
    const row = this.db.sql("SELECT log_bytes, log_identity, fold FROM sessions WHERE uid = ?").get(uid);
    if (row === undefined) return null;
    const fold = JSON.parse(String(row.fold)) as IndexState;
    return { logBytes: Number(row.log_bytes), identity: String(row.log_identity), fold };
  }

  /** Returns `null` if the session is not indexed. */
  knownBytes(uid: string): { readonly logBytes: number; readonly identity: string } | null {
    const row = this.db.sql("SELECT log_bytes, log_identity FROM sessions WHERE uid = ?").get(uid);
    return row === undefined ? null : { logBytes: Number(row.log_bytes), identity: String(row.log_identity) };
  }

  /** Returns `null` if the entry is not indexed. */
  place(uid: string, entryId: string): IndexedPlace | null {
    const row = this.db
      .sql("SELECT position, offset, length FROM entries WHERE uid = ? AND entry_id = ?")
      .get(uid, entryId);
    return row === undefined ? null : placeOf(row);
  }

  placed(uid: string, entryId: string): PlacedEntry | null {
    const row = this.db
      .sql("SELECT position, leaf, state FROM entries WHERE uid = ? AND entry_id = ?")
      .get(uid, entryId);
    if (row === undefined) return null;
    const leaf = row.leaf === null ? null : Number(row.leaf);
    return { id: entryId, position: Number(row.position), leaf, state: Number(row.state) };
  }

  idAt(uid: string, position: number): string | null {
    const sql = "SELECT entry_id FROM entries INDEXED BY entries_position WHERE uid = ? AND position = ?";
    const row = this.db.sql(sql).get(uid, position);
    return row === undefined ? null : String(row.entry_id);
  }

  /** Returns `null` for a root, and `undefined` if there is no such entry. */
  parentAt(uid: string, position: number): number | null | undefined {
    const sql = "SELECT parent FROM entries INDEXED BY entries_position WHERE uid = ? AND position = ?";
    const row = this.db.sql(sql).get(uid, position);
    return row === undefined ? undefined : row.parent === null ? null : Number(row.parent);
  }

  /** Returns the interned context state after an entry. */
  state(uid: string, id: number): string {
    const row = this.db.sql("SELECT value FROM states WHERE uid = ? AND id = ?").get(uid, id);
    return row === undefined ? "{}" : String(row.value);
  }

  /** Returns entry positions in log order. */
  places(uid: string, from: number, to: number): IndexedPlace[] {
    const sql =
      "SELECT position, offset, length FROM entries WHERE uid = ? AND position >= ? AND position < ? ORDER BY position";
    return this.db.sql(sql).all(uid, from, to).map(placeOf);
  }

  /** Returns where the lines from one position up to another start, and their total length with line breaks. */
  span(uid: string, from: number, to: number): { readonly offset: number; readonly bytes: number } {
    const sql =
      "SELECT min(offset) AS offset, total(length + 1) AS bytes FROM entries INDEXED BY entries_position WHERE uid = ? AND position >= ? AND position < ?";
    const row = this.db.sql(sql).get(uid, from, to);
    return { offset: Number(row?.offset), bytes: Number(row?.bytes) };
  }

  /** Returns the sessions that have one of these entries. */
  withEntries(entryIds: readonly string[]): string[] {
    return this.db
      .sql("SELECT DISTINCT uid FROM entries WHERE entry_id IN (SELECT value FROM json_each(?))")
      .all(JSON.stringify(entryIds))
      .map((row) => String(row.uid));
  }

  /** Returns the blobs that sessions in a folder refer to. */
  blobsIn(home: string, agentId: string): Set<string> {
    const sql =
      "SELECT DISTINCT sha256 FROM blobs WHERE uid IN (SELECT uid FROM sessions WHERE home = ? AND agent = ?)";
    return new Set(
      this.db
        .sql(sql)
        .all(home, agentId)
        .map((row) => String(row.sha256)),
    );
  }

  /** Returns a folder's sessions, most recently used first. */
  recordsIn(home: string, agentId: string): ListedSession[] {
    const sql = "SELECT record FROM sessions WHERE home = ? AND agent = ? ORDER BY updated_at DESC, uid DESC";
    return this.db
      .sql(sql)
      .all(home, agentId)
      .map((row) => JSON.parse(String(row.record)) as ListedSession);
  }

  countIn(home: string, agentId: string): number {
    const sql = "SELECT count(*) AS count FROM sessions WHERE home = ? AND agent = ?";
    return Number(this.db.sql(sql).get(home, agentId)?.count);
  }

  putSession(listed: ListedSession, home: string, known: Known): void {
    const totalTokens = toTokenCount(listed.digest.totalTokens);
    const record = { ...listed, digest: { ...listed.digest, totalTokens } };
    const { uid, userId, agentId, kind, meta, updatedAt, key } = record;
    const special = key === "global" || key === "unknown" ? key : null;
    this.db.run(
      "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      uid,
      userId ?? "",
      agentId,
      kind,
      special,
      meta.label ?? null,
      meta.archived === true ? 1 : 0,
      meta.spawnedBy ?? null,
      updatedAt,
      namesOf(record),
      home,
      JSON.stringify(record),
      known.logBytes,
      known.identity,
      JSON.stringify(known.fold),
      key,
      channelOf(record),
    );
  }

  /** Returns `false` if the ID already exists. */
  putEntry(uid: string, entry: IndexedEntry): boolean {
    const { id, position, offset, length, parent, leaf, state, role } = entry;
    const sql = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
    const { changes } = this.db.run(sql, uid, id, position, offset, length, parent, leaf, state, role);
    return Number(changes) > 0;
  }

  putWords(owner: { uid: string; userId: string | null; agentId: string }, entry: IndexedEntry): void {
    const { uid, userId, agentId } = owner;
    for (const sha256 of entry.blobs) {
      this.db.run("INSERT OR IGNORE INTO blobs (uid, sha256) VALUES (?, ?)", uid, sha256);
    }
    if (entry.text === null || entry.text.words.length === 0) return;
    const { words, parts } = entry.text;
    const codes = codesOf(entry.text);
    const { lastInsertRowid } = this.db.run(
      "INSERT INTO said (uid, entry_id, role, time, length, codes) VALUES (?, ?, ?, ?, ?, ?)",
      ...[uid, entry.id, entry.role, entry.time, words.length],
      new Uint8Array(codes.buffer),
    );
    this.db.run(
      "INSERT INTO said_totals VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET entries = entries + 1",
      ...[uid, entry.role],
    );
    const user = userPrefix(userId ?? "");
    const scope = [scopeWord("a", agentId), scopeWord("s", uid), scopeWord("r", entry.role)];
    const body = [...scope, ...new Set([...words, ...parts])].map((word) => user + word).join(" ");
    this.db.run("INSERT INTO words (rowid, body) VALUES (?, ?)", lastInsertRowid, body);
  }

  putState(uid: string, id: number, value: string): void {
    this.db.run("INSERT OR REPLACE INTO states (uid, id, value) VALUES (?, ?, ?)", uid, id, value);
  }

  remove(uid: string): void {
    this.db.exclusively(() => {
      this.db.run("DELETE FROM words WHERE rowid IN (SELECT id FROM said WHERE uid = ?)", uid);
      this.db.run("DELETE FROM embeddings WHERE id IN (SELECT id FROM said WHERE uid = ?)", uid);
      for (const table of ["said", "said_totals", "entries", "states", "blobs", "sessions"]) {
        this.db.run(`DELETE FROM ${table} WHERE uid = ?`, uid);
      }
    });
  }

  /**
   * Erases deleted words and rows from the file, including the word index, free pages and the write-ahead log. Returns
   * `false` if a reader prevented that.
   */
  scrub(): boolean {
    return this.db.scrub(() => void this.db.run("INSERT INTO words (words) VALUES ('optimize')"));
  }

  /** Syncs all changes so far. Returns `false` if a reader prevented that. */
  checkpoint(): boolean {
    return this.db.checkpoint();
  }

  close(): void {
    this.db.close();
  }
}

function placeOf(row: Record<string, unknown>): IndexedPlace {
  return { position: Number(row.position), offset: Number(row.offset), length: Number(row.length) };
}

const known = new Map<string, string>();
const mostKnown = 10_000;

function shortHash(name: string): string {
  const made = known.get(name);
  if (made !== undefined) return made;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 24);
  if (known.size >= mostKnown) known.clear();
  known.set(name, hash);
  return hash;
}

/**
 * Every word in the index starts with a prefix for its user, so a search reads only the user's part of the index, even
 * for a word that all users write.
 */
export function userPrefix(userId: string): string {
  return `${shortHash(userId)}$`;
}

/** A word by which the full-text index filters entries. The dollar sign cannot occur in a word of a text. */
export function scopeWord(kind: "a" | "s" | "r", name: string): string {
  return `$${kind}${shortHash(name)}`;
}
