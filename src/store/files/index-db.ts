import { createHash } from "node:crypto";
import type { Entry } from "../../core/entries.ts";
import type { Scope, SearchQuery, SessionQuery, SessionRecord } from "../contract.ts";
import { entryText } from "../entry-text.ts";
import type { ListPlace } from "../listing.ts";
import type { SearchTerm } from "../search-words.ts";
import { wordsOf } from "../search-words.ts";
import { Database } from "./database.ts";

/**
 * `index.db`: what lists and searches read. Derived from the logs and deletable at any time. Its commits are not synced,
 * so a session stays marked in `work.db` until a checkpoint has brought it to the disk.
 */

const migrations = [
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
     log_bytes INTEGER NOT NULL,
     entries INTEGER NOT NULL,
     linear INTEGER NOT NULL,
     last_id TEXT,
     record TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX sessions_user ON sessions (user, archived, updated_at DESC, uid DESC);
   CREATE INDEX sessions_agent ON sessions (user, agent, archived, updated_at DESC, uid DESC);
   CREATE INDEX sessions_kind ON sessions (user, kind, archived, updated_at DESC, uid DESC);
   CREATE INDEX sessions_label ON sessions (user, label, archived, updated_at DESC, uid DESC) WHERE label IS NOT NULL;
   CREATE INDEX sessions_parent ON sessions (user, spawned_by, archived, updated_at DESC, uid DESC) WHERE spawned_by IS NOT NULL;
   CREATE TABLE entries (
     uid TEXT NOT NULL,
     entry_id TEXT NOT NULL,
     position INTEGER NOT NULL,
     offset INTEGER NOT NULL,
     length INTEGER NOT NULL,
     PRIMARY KEY (uid, entry_id)
   ) STRICT, WITHOUT ROWID;
   CREATE UNIQUE INDEX entries_position ON entries (uid, position, offset, length);
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
];

/** Hits beyond so many, from the newest on, are not ranked. */
const mostRanked = 20_000;

/** How far a session is in the index. */
export interface Known {
  readonly logBytes: number;
  readonly entries: number;
  /** Each entry hangs on the one before it: the order of the log is that of the branch. */
  readonly isLinear: boolean;
  readonly lastId: string | null;
}

export interface IndexedPlace {
  readonly position: number;
  readonly offset: number;
  readonly length: number;
}

export interface NewEntry extends IndexedPlace {
  readonly entry: Entry;
}

export interface FoundEntry {
  readonly uid: string;
  readonly entryId: string;
  readonly role: string;
  readonly time: number;
}

export class IndexDb {
  readonly #db: Database;

  constructor(path: string) {
    this.#db = new Database(path, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;", migrations);
  }

  /** All of it or nothing; nobody else changes the index meanwhile. */
  exclusively<T>(act: () => T): T {
    return this.#db.exclusively(act);
  }

  isEmpty(): boolean {
    return this.#db.sql("SELECT 1 FROM sessions LIMIT 1").get() === undefined;
  }

  /** How far a session is in the index; `null`: not at all. */
  known(uid: string): Known | null {
    const row = this.#db
      .sql("SELECT log_bytes, entries, linear, last_id FROM sessions WHERE uid = ?")
      .get(uid);
    if (row === undefined) return null;
    return {
      logBytes: Number(row.log_bytes),
      entries: Number(row.entries),
      isLinear: row.linear === 1,
      lastId: row.last_id === null ? null : String(row.last_id),
    };
  }

  /** Where an entry stands; `null`: not in the index. */
  place(uid: string, entryId: string): IndexedPlace | null {
    const row = this.#db
      .sql("SELECT position, offset, length FROM entries WHERE uid = ? AND entry_id = ?")
      .get(uid, entryId);
    return row === undefined ? null : placeOf(row);
  }

  /** The places of entries from one position on, in the order of the log. */
  places(uid: string, from: number, to: number): IndexedPlace[] {
    const sql =
      "SELECT position, offset, length FROM entries WHERE uid = ? AND position >= ? AND position < ? ORDER BY position";
    return this.#db.sql(sql).all(uid, from, to).map(placeOf);
  }

  /** Takes in a session as it is now, with entries that are not known yet. */
  put(record: SessionRecord, next: Known, entries: readonly NewEntry[]): void {
    this.#db.exclusively(() => {
      for (const entry of entries) this.#putEntry(record, entry);
      this.#putRecord(record, next);
    });
  }

  remove(uid: string): void {
    this.#db.exclusively(() => {
      this.#db.run("DELETE FROM words WHERE rowid IN (SELECT id FROM said WHERE uid = ?)", uid);
      this.#db.run("DELETE FROM said WHERE uid = ?", uid);
      this.#db.run("DELETE FROM entries WHERE uid = ?", uid);
      this.#db.run("DELETE FROM sessions WHERE uid = ?", uid);
    });
  }

  list(scope: Scope, query: SessionQuery, limit: number, behind: ListPlace | null): SessionRecord[] {
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
    const rows = this.#db
      .sql(`SELECT record FROM sessions WHERE ${where.join(" AND ")} ${order}`)
      .all(...values, limit);
    return rows.map((row) => JSON.parse(String(row.record)) as SessionRecord);
  }

  search(
    scope: Scope,
    query: SearchQuery,
    terms: readonly SearchTerm[],
    uid: string | null,
    limit: number,
  ): FoundEntry[] {
    const asked = [
      scopeWord("u", scope.userId ?? ""),
      ...(scope.agentId === undefined ? [] : [scopeWord("a", scope.agentId)]),
      ...(uid === null ? [] : [scopeWord("s", uid)]),
      ...(query.role === undefined ? [] : [scopeWord("r", query.role)]),
    ];
    const body = terms.map(({ words, prefix }) => `"${words.join(" ")}"${prefix ? " *" : ""}`).join(" AND ");
    const match = `scope : (${asked.join(" AND ")}) AND body : (${body})`;
    const rows = this.#db
      .sql(
        `SELECT said.uid, said.entry_id, said.role, said.time FROM
           (SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ${mostRanked}) AS hit
         JOIN said ON said.id = hit.rowid
         WHERE said.time >= ? AND said.time <= ? ORDER BY hit.rank, said.id DESC LIMIT ?`,
      )
      .all(match, query.since ?? 0, query.until ?? Number.MAX_SAFE_INTEGER, limit);
    return rows.map((row) => ({
      uid: String(row.uid),
      entryId: String(row.entry_id),
      role: String(row.role),
      time: Number(row.time),
    }));
  }

  /** Everything so far is on the disk afterwards; `false` when a reader stood in the way. */
  checkpoint(): boolean {
    return this.#db.sql("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0;
  }

  close(): void {
    this.#db.close();
  }

  #putRecord(record: SessionRecord, { logBytes, entries, isLinear, lastId }: Known): void {
    const { uid, userId, agentId, kind, key, sessionId, name, meta, updatedAt } = record;
    const special = key === "global" || key === "unknown" ? key : null;
    const names = [key, sessionId, name, meta.label, meta.displayName]
      .filter(Boolean)
      .join("\n")
      .toLowerCase();
    this.#db.run(
      "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      uid,
      userId ?? "",
      agentId,
      kind,
      special,
      meta.label ?? null,
      meta.archived === true ? 1 : 0,
      meta.spawnedBy ?? null,
      updatedAt,
      names,
      logBytes,
      entries,
      isLinear ? 1 : 0,
      lastId,
      JSON.stringify(record),
    );
  }

  #putEntry({ uid, userId, agentId }: SessionRecord, { entry, position, offset, length }: NewEntry): void {
    this.#db.run("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", uid, entry.id, position, offset, length);
    const said = entryText(entry);
    if (said === null) return;
    const words = wordsOf(said.text);
    if (words.length === 0) return;
    const time = Date.parse(entry.timestamp) || 0;
    const { lastInsertRowid } = this.#db.run(
      "INSERT INTO said (uid, entry_id, role, time) VALUES (?, ?, ?, ?)",
      uid,
      entry.id,
      said.role,
      time,
    );
    const scope = [
      scopeWord("u", userId ?? ""),
      scopeWord("a", agentId),
      scopeWord("s", uid),
      scopeWord("r", said.role),
    ];
    this.#db.run(
      "INSERT INTO words (rowid, scope, body) VALUES (?, ?, ?)",
      lastInsertRowid,
      scope.join(" "),
      words.join(" "),
    );
  }
}

function placeOf(row: Record<string, unknown>): IndexedPlace {
  return { position: Number(row.position), offset: Number(row.offset), length: Number(row.length) };
}

const scopeWords = new Map<string, string>();
const mostScopeWords = 10_000;

/** A name as one word of the index, whatever is in it. */
function scopeWord(kind: string, name: string): string {
  const known = scopeWords.get(kind + name);
  if (known !== undefined) return known;
  const word = `${kind}${createHash("sha256").update(name).digest("hex").slice(0, 32)}`;
  if (scopeWords.size >= mostScopeWords) scopeWords.clear();
  scopeWords.set(kind + name, word);
  return word;
}
