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
     PRIMARY KEY (uid, entry_id)
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
];

/** Hits beyond so many, from the newest on, are not ranked. */
const mostRanked = 20_000;

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

  isEmpty(): boolean {
    return this.#db.sql("SELECT 1 FROM sessions LIMIT 1").get() === undefined;
  }

  /** How far a session is in the index; `null`: not at all. */
  known(uid: string): { logBytes: number; entries: number } | null {
    const row = this.#db.sql("SELECT log_bytes, entries FROM sessions WHERE uid = ?").get(uid);
    return row === undefined ? null : { logBytes: Number(row.log_bytes), entries: Number(row.entries) };
  }

  /** Whether an entry stands among the first so many of a log; `null`: the index does not go that far. */
  has(uid: string, entryId: string, amongFirst: number): boolean | null {
    const known = this.known(uid);
    if (known === null || known.entries < amongFirst) return null;
    const found = this.#db
      .sql("SELECT position FROM entries WHERE uid = ? AND entry_id = ?")
      .get(uid, entryId);
    return found !== undefined && Number(found.position) < amongFirst;
  }

  /** Takes in a session as it is now, and its entries from the first one on that is not known yet. */
  put(record: SessionRecord, logBytes: number, entries: Iterable<Entry>, from: number): void {
    this.#db.exclusively(() => {
      let count = from;
      for (const entry of entries) {
        this.#putEntry(record, entry, count);
        count += 1;
      }
      this.#putRecord(record, logBytes, count);
    });
  }

  remove(uid: string): void {
    this.#db.exclusively(() => {
      this.#db.sql("DELETE FROM words WHERE rowid IN (SELECT id FROM said WHERE uid = ?)").run(uid);
      this.#db.sql("DELETE FROM said WHERE uid = ?").run(uid);
      this.#db.sql("DELETE FROM entries WHERE uid = ?").run(uid);
      this.#db.sql("DELETE FROM sessions WHERE uid = ?").run(uid);
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

  #putRecord(record: SessionRecord, logBytes: number, entries: number): void {
    const { uid, userId, agentId, kind, key, sessionId, name, meta, updatedAt } = record;
    const special = key === "global" || key === "unknown" ? key : null;
    const names = [key, sessionId, name, meta.label, meta.displayName]
      .filter(Boolean)
      .join("\n")
      .toLowerCase();
    this.#db
      .sql("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(
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
        JSON.stringify(record),
      );
  }

  #putEntry({ uid, userId, agentId }: SessionRecord, entry: Entry, position: number): void {
    this.#db.sql("INSERT OR IGNORE INTO entries VALUES (?, ?, ?)").run(uid, entry.id, position);
    const said = entryText(entry);
    if (said === null) return;
    const words = wordsOf(said.text);
    if (words.length === 0) return;
    const time = Date.parse(entry.timestamp) || 0;
    const { lastInsertRowid } = this.#db
      .sql("INSERT INTO said (uid, entry_id, role, time) VALUES (?, ?, ?, ?)")
      .run(uid, entry.id, said.role, time);
    const scope = [
      scopeWord("u", userId ?? ""),
      scopeWord("a", agentId),
      scopeWord("s", uid),
      scopeWord("r", said.role),
    ];
    this.#db
      .sql("INSERT INTO words (rowid, scope, body) VALUES (?, ?, ?)")
      .run(lastInsertRowid, scope.join(" "), words.join(" "));
  }
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
