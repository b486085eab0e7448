import { createHash, randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import type {
  Appended,
  AppendItem,
  AppendOptions,
  Json,
  ListedSession,
  MetaPatch,
  Redaction,
  Scope,
  SearchHit,
  SearchQuery,
  SessionInit,
  SessionMeta,
  SessionPage,
  SessionQuery,
  SessionReach,
  SessionRecord,
  SessionStore,
  StateStore,
  Store,
  StoreChange,
} from "../../src/entry-store.ts";
import { formatKey, parseKey, parseSessionId, SessionTree, SkeinError } from "../../src/index.ts";
import type { Place, Row } from "./sqlite-store-rules.ts";
import {
  checkFence,
  comparePlaces,
  conflict,
  cursorOf,
  digestOf,
  hasId,
  idIn,
  idOf,
  invalid,
  isIn,
  isListed,
  isRedacted,
  jsonText,
  lastSaid,
  matching,
  missing,
  orNull,
  pageOf,
  patched,
  placeIn,
  placeOf,
  recordOf,
  saidIn,
  tombstone,
  trashedOf,
  treeOf,
  wordsIn,
} from "./sqlite-store-rules.ts";

/**
 * A store as a user might write one, in one SQLite file, using only the package's exports. It reads everything for
 * every call, which is fast enough for tests.
 */
export function openSqliteStore(path: string): Store {
  return new SqliteStore(path);
}

class SqliteStore implements Store {
  readonly #db: DatabaseSync;
  readonly #listeners = new Set<{ scope: Scope; listener: (change: StoreChange) => void }>();
  readonly sessions: SessionStore;
  readonly state: StateStore;

  constructor(path: string) {
    this.#db = new DatabaseSync(path, { timeout: 10_000 });
    this.#db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;
      CREATE TABLE IF NOT EXISTS sessions (uid TEXT PRIMARY KEY, user TEXT, doc TEXT NOT NULL, log TEXT NOT NULL);
      CREATE INDEX IF NOT EXISTS sessions_user ON sessions (user);
      CREATE TABLE IF NOT EXISTS state (uid TEXT, key TEXT, value TEXT, version INTEGER, PRIMARY KEY (uid, key));
      CREATE TABLE IF NOT EXISTS blobs (user TEXT, agent TEXT, sha256 TEXT, bytes BLOB);`);
    this.sessions = this.#sessions();
    this.state = this.#state();
  }

  readonly search = {
    search: async (scope: Scope, query: SearchQuery) => ({ hits: this.#search(scope, query), behind: 0 }),
  };

  readonly blobs = {
    put: async (scope: Scope, bytes: Uint8Array) => {
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      this.#putBlob(scope.userId ?? null, scope.agentId ?? "main", sha256, bytes);
      return sha256;
    },
    get: async (scope: Scope, sha256: string) =>
      this.#blob(scope.userId ?? null, scope.agentId ?? "main", sha256),
  };

  readonly watch = {
    subscribe: (scope: Scope, listener: (change: StoreChange) => void) => {
      const subscription = { scope, listener };
      this.#listeners.add(subscription);
      return () => void this.#listeners.delete(subscription);
    },
  };

  async purgeUser(userId: string): Promise<{ sessions: number }> {
    if (userId === "") throw new SkeinError("invalid_user_id", { userId, problem: "it is empty" });
    return this.#write((later) => {
      const rows = this.#rows(userId);
      for (const row of rows) this.#erase(row, later);
      this.#db.prepare("DELETE FROM blobs WHERE user = ?").run(userId);
      return { sessions: rows.length };
    });
  }

  async close(): Promise<void> {
    if (this.#db.isOpen) this.#db.close();
  }

  #sessions(): SessionStore {
    return {
      create: async (scope, init) =>
        this.#write((later) =>
          this.#add(scope, init, SessionTree.create({ cwd: init.cwd, ...idOf(init) }), later),
        ),
      get: async (scope, sessionId) => orNull(this.#find(scope, sessionId), recordOf),
      find: async (scope, lookup) => this.#live(scope).filter(matching(lookup)).map(recordOf),
      list: async (scope, query) => this.#list(scope, query),
      count: async (scope, query) => this.#listed(scope, query).length,
      agentIds: async (scope) => [...new Set(this.#live(scope).map(({ agentId }) => agentId))].toSorted(),
      patch: async (scope, sessionId, changes, options = {}) =>
        this.#write((later) => this.#patch(scope, sessionId, changes, options, later)),
      append: async (scope, sessionId, items, options = {}) =>
        this.#write((later) => this.#append(scope, sessionId, items, options, later)),
      branch: async (scope, sessionId, targetId, { fence } = {}) =>
        this.#write((later) => {
          const row = this.#require(scope, sessionId);
          checkFence(fence, sessionId);
          const moved = row.tree.branch(targetId);
          this.#save(row);
          if (moved !== null) later({ type: "appended", session: recordOf(row), entries: [moved] });
          return recordOf(row);
        }),
      fork: async (scope, sessionId, entryId, init) =>
        this.#write((later) => {
          const source = this.#require(scope, sessionId);
          const tree = source.tree.fork(entryId, { cwd: init.cwd, ...idOf(init) });
          const made = this.#add(scope, init, tree, later);
          for (const [, sha256 = ""] of tree.encode().matchAll(/"sha256":"([0-9a-f]{64})"/g)) {
            const bytes = this.#blob(source.userId, source.agentId, sha256);
            if (bytes !== null) this.#putBlob(made.userId, made.agentId, sha256, bytes);
          }
          return made;
        }),
      context: async (scope, sessionId, options = {}) =>
        orNull(this.#find(scope, sessionId), ({ tree }) => tree.context(undefined, options)),
      entry: async (scope, sessionId, entryId) => this.#find(scope, sessionId)?.tree.entry(entryId) ?? null,
      page: async (scope, sessionId, range) =>
        orNull(this.#find(scope, sessionId), ({ tree }) => pageOf(tree, range)),
      prewarm: async () => undefined,
      remove: async (scope, sessionId, { ifUpdatedAt } = {}) =>
        this.#write((later) => {
          const row = this.#find(scope, sessionId);
          if (row === null) return false;
          if (ifUpdatedAt !== undefined && ifUpdatedAt !== row.updatedAt) conflict("It was used meanwhile");
          row.removedAt = Date.now();
          this.#save(row);
          later({ type: "removed", session: recordOf(row) });
          return true;
        }),
      restore: async (scope, sessionId) =>
        this.#write((later) => {
          const row = this.#trash(scope, sessionId) ?? missing(sessionId);
          this.#checkFree(row, row.uid);
          row.removedAt = null;
          this.#save(row);
          later({ type: "restored", session: recordOf(row) });
          return recordOf(row);
        }),
      trashed: async (scope) =>
        this.#rows(scope.userId ?? null)
          .filter((row) => row.removedAt !== null && isIn(scope, row))
          .map(trashedOf)
          .sort((a, b) => b.removedAt - a.removedAt),
      purge: async (scope, sessionId, { ifRemovedAt } = {}) =>
        this.#write((later) => {
          const row = this.#trash(scope, sessionId);
          if (row === null) return false;
          if (ifRemovedAt !== undefined && ifRemovedAt !== row.removedAt)
            conflict("It was restored meanwhile");
          this.#erase(row, later);
          return true;
        }),
      adopt: async (scope, init, tree) =>
        this.#write((later) => {
          const id = init.sessionId === undefined ? randomUUID() : parseSessionId(init.sessionId);
          const [, ...lines] = tree.encode().split("\n");
          const timestamp = tree.header.timestamp ?? new Date().toISOString();
          const header = JSON.stringify({ type: "session", version: 3, id, timestamp, cwd: init.cwd });
          return this.#add(scope, init, treeOf([header, ...lines].join("\n")), later);
        }),
      reset: async (scope, sessionId, options = {}) =>
        this.#write((later) => this.#reset(scope, sessionId, options, later)),
      redact: async (scope, sessionId, entryIds) =>
        this.#write((later) => this.#redact(scope, sessionId, entryIds, later)),
    };
  }

  #state(): StateStore {
    const held = (scope: Scope, sessionId: string, key: string) => {
      const row = this.#find(scope, sessionId);
      const sql = "SELECT value, version FROM state WHERE uid = ? AND key = ?";
      return row === null ? undefined : this.#db.prepare(sql).get(row.uid, key);
    };
    return {
      get: async (scope, sessionId, key) => {
        const found = held(scope, sessionId, key);
        return found === undefined
          ? null
          : { value: JSON.parse(String(found.value)) as Json, version: Number(found.version) };
      },
      set: async (scope, sessionId, key, value, { ifVersion } = {}) =>
        this.#write(() => {
          if (!/^[A-Za-z0-9][\w.-]*$/.test(key)) invalid(`The state key ${key} is not valid`);
          const text = jsonText(value);
          const { uid } = this.#require(scope, sessionId);
          const found = held(scope, sessionId, key);
          const actual = found === undefined ? null : Number(found.version);
          if (ifVersion !== undefined && ifVersion !== actual) conflict(`It has version ${actual}`);
          const version = (actual ?? 0) + 1;
          this.#db.prepare("INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?)").run(uid, key, text, version);
          return version;
        }),
      delete: async (scope, sessionId, key) => {
        const row = this.#find(scope, sessionId);
        const sql = "DELETE FROM state WHERE uid = ? AND key = ?";
        return row !== null && Number(this.#db.prepare(sql).run(row.uid, key).changes) > 0;
      },
      keys: async (scope, sessionId) => {
        const row = this.#find(scope, sessionId);
        const sql = "SELECT key FROM state WHERE uid = ? ORDER BY key";
        return this.#db
          .prepare(sql)
          .all(row?.uid ?? "")
          .map(({ key }) => String(key));
      },
    };
  }

  #append(
    scope: Scope,
    sessionId: string,
    items: readonly AppendItem[],
    { expectedLeafId, parentId, fence }: AppendOptions,
    later: (change: StoreChange) => void,
  ): Appended {
    const row = this.#require(scope, sessionId);
    checkFence(fence, sessionId);
    const { tree } = row;
    const plan = tree.plan(items, expectedLeafId, parentId);
    const known = tree.size;
    tree.commit(plan);
    const added = [...tree.entries(known)];
    if (added.length > 0) {
      row.updatedAt = lastSaid(added) || row.updatedAt;
      this.#save(row);
      later({ type: "appended", session: recordOf(row), entries: added });
    }
    return { entries: plan.entries, leafId: tree.leafId };
  }

  #patch(
    scope: Scope,
    sessionId: string,
    changes: MetaPatch,
    { ifVersion, ifUpdatedAt }: { ifVersion?: number; ifUpdatedAt?: number },
    later: (change: StoreChange) => void,
  ): SessionRecord {
    const row = this.#require(scope, sessionId);
    if (ifVersion !== undefined && ifVersion !== row.version) conflict(`It has version ${row.version}`);
    if (ifUpdatedAt !== undefined && ifUpdatedAt !== row.updatedAt) conflict("It was used meanwhile");
    const meta = patched(row.meta, changes);
    if (JSON.stringify(meta) === JSON.stringify(row.meta)) return recordOf(row);
    this.#checkFree({ ...row, meta }, row.uid);
    Object.assign(row, { meta, version: row.version + 1 });
    this.#save(row);
    later({ type: "patched", session: recordOf(row), changed: Object.keys(changes) });
    return recordOf(row);
  }

  #reset(
    scope: Scope,
    sessionId: string,
    { sessionId: given, fence }: { sessionId?: string } & Pick<AppendOptions, "fence">,
    later: (change: StoreChange) => void,
  ): { old: SessionRecord; fresh: SessionRecord } {
    const row = this.#require(scope, sessionId);
    checkFence(fence, sessionId);
    const { key, agentId, tree } = row;
    if (parseKey(key).form === "reset") conflict("It was reset before");
    const { label, archived: _archived, importedFrom: _imported, ...kept } = row.meta;
    const id = given === undefined ? randomUUID() : parseSessionId(given);
    if (this.#rows(row.userId).some((each) => hasId(each, id))) conflict(`The id ${id} is taken`);
    const { label: _label, ...ofOld } = row.meta;
    row.key = formatKey({ form: "reset", agentId, sessionId: tree.header.id });
    Object.assign(row, { meta: ofOld, version: row.version + 1 });
    this.#save(row);
    const old = recordOf(row);
    later({ type: "patched", session: old, changed: ["key"] });
    const cwd = tree.header.cwd ?? "";
    const meta = { ...(label === undefined ? {} : { label }), ...kept } as SessionMeta;
    const init = { key, sessionId: id, cwd, meta };
    const fresh = this.#add(scope, init, SessionTree.create({ cwd, id }), later);
    later({ type: "reset", session: old, fresh });
    return { old, fresh };
  }

  #redact(
    scope: Scope,
    sessionId: string,
    entryIds: readonly string[],
    later: (change: StoreChange) => void,
  ): Redaction {
    const source = this.#require(scope, sessionId);
    for (const id of entryIds) source.tree.parentOf(id);
    const wanted = new Map(entryIds.map((id) => [id, JSON.stringify(source.tree.entry(id))]));
    const others = this.#rows(source.userId).filter(({ uid }) => uid !== source.uid);
    const done: { sessionId: string; entryIds: string[] }[] = [];
    const mayRepeat: { sessionId: string; entryId: string }[] = [];
    for (const row of [source, ...others]) {
      const gone = [...row.tree.entries()].filter(
        (entry) => wanted.get(entry.id) === JSON.stringify(entry) && !isRedacted(entry),
      );
      if (gone.length === 0) continue;
      const ids = new Set(gone.map(({ id }) => id));
      const lines = row.tree.encode().split("\n");
      row.tree = treeOf(lines.map((line) => (ids.has(idIn(line)) ? tombstone(line) : line)).join("\n"));
      this.#save(row);
      const id = row.tree.header.id;
      done.push({ sessionId: id, entryIds: [...ids] });
      const first = [...row.tree.entries()].findIndex((entry) => ids.has(entry.id));
      for (const entry of [...row.tree.entries()].slice(first))
        if (entry.type === "compaction" || entry.type === "branch_summary")
          mayRepeat.push({ sessionId: id, entryId: entry.id });
      if (row.removedAt === null) later({ type: "redacted", session: recordOf(row) });
    }
    return { sessions: done, mayRepeat };
  }

  #list(scope: Scope, query: SessionQuery): SessionPage {
    const limit = query.limit ?? 100;
    if (!Number.isInteger(limit) || limit < 1) invalid(`The limit ${limit} is not a positive integer`);
    const { sort = "updated", cursor } = query;
    let found = this.#listed(scope, query).map((session) => ({ session, place: placeOf(session, sort) }));
    if (cursor !== undefined) {
      const [by, ...place] = placeIn(cursor) ?? invalid("The cursor is not valid");
      if (by !== sort) invalid("The cursor is not valid");
      found = found.filter((each) => comparePlaces(place as Place, each.place) < 0);
    }
    found.sort((a, b) => comparePlaces(a.place, b.place));
    const last = found[limit - 1];
    const nextCursor = found.length > limit && last !== undefined ? cursorOf(sort, last.place) : null;
    return { sessions: found.slice(0, limit).map(({ session }) => session), nextCursor, behind: 0 };
  }

  #listed(scope: Scope, query: SessionQuery): ListedSession[] {
    const isReached = this.#reaching(scope, query.reach);
    return this.#live(scope)
      .filter((row) => isReached(row) && isListed(recordOf(row), query))
      .map((row) => ({ ...recordOf(row), digest: digestOf(row) }));
  }

  #reaching({ userId }: Scope, reach: SessionReach | undefined): (row: Row) => boolean {
    if (reach === undefined || reach.agentIds === "all") return () => true;
    const { treeOf: top, agentIds, descendants = true } = reach;
    const keys = new Set(top === null ? [] : [top]);
    const kin = descendants ? this.#rows(userId ?? null).filter(({ removedAt }) => removedAt === null) : [];
    for (const parent of keys) for (const { key, meta } of kin) if (meta.spawnedBy === parent) keys.add(key);
    return ({ key, agentId }) => keys.has(key) || agentIds.includes(agentId);
  }

  #search(scope: Scope, query: SearchQuery): SearchHit[] {
    const terms = wordsIn(query.text, true);
    const isReached = this.#reaching(scope, query.reach);
    const hits: (SearchHit & { rank: number })[] = [];
    for (const row of this.#live(scope).filter(isReached)) {
      if (query.sessionId !== undefined && !hasId(row, query.sessionId)) continue;
      for (const entry of row.tree.entries()) {
        const said = saidIn(entry);
        const time = Date.parse(entry.timestamp);
        const text = query.shownText === undefined ? said?.text : query.shownText(entry);
        if (said === null || typeof text !== "string" || (query.role ?? said.role) !== said.role) continue;
        if (time < (query.since ?? 0) || time > (query.until ?? Number.POSITIVE_INFINITY)) continue;
        const words = wordsIn(text, false);
        const counts = terms.map((term) => words.filter((word) => word === term).length);
        const count = counts.reduce((sum, each) => sum + each, 0);
        if (count === 0) continue;
        const rank = (counts.every((each) => each > 0) ? 1000 : 0) + count / words.length;
        const { key, tree } = row;
        const place = { sessionId: tree.header.id, key, entryId: entry.id, role: said.role, time };
        hits.push({ ...place, snippet: text.slice(0, 200), rank });
      }
    }
    hits.sort((a, b) => b.rank - a.rank || b.time - a.time);
    const { offset = 0, limit = 10 } = query;
    return hits.slice(offset, offset + limit).map(({ rank: _rank, ...hit }) => hit);
  }

  #add(
    scope: Scope,
    init: SessionInit,
    tree: SessionTree,
    later: (change: StoreChange) => void,
  ): SessionRecord {
    const parsed = parseKey(init.key);
    const agentId = parsed.form === "special" ? (scope.agentId ?? "main") : parsed.agentId;
    if ((scope.agentId ?? agentId) !== agentId)
      throw new SkeinError("invalid_key", { key: init.key, problem: "another agent's", expected: "its own" });
    const createdAt = Date.parse(tree.header.timestamp ?? "") || Date.now();
    const row: Row = {
      uid: randomUUID(),
      userId: scope.userId ?? null,
      agentId,
      key: formatKey(parsed),
      meta: patched({}, init.meta ?? {}),
      version: 1,
      createdAt,
      updatedAt: Math.max(createdAt, lastSaid([...tree.entries()])),
      removedAt: null,
      tree,
    };
    this.#checkFree(row, null);
    this.#save(row);
    later({ type: "created", session: recordOf(row) });
    return recordOf(row);
  }

  #checkFree({ userId, agentId, key, meta, tree }: Row, self: string | null): void {
    for (const other of this.#rows(userId)) {
      if (other.uid === self) continue;
      if (hasId(other, tree.header.id)) conflict(`The id ${tree.header.id} is taken`);
      if (other.removedAt !== null) continue;
      if (other.key === key) conflict(`The key ${key} is taken`);
      const isSame = other.agentId === agentId && meta.label !== undefined && other.meta.label === meta.label;
      if (isSame) conflict(`The label ${meta.label} is taken`);
    }
  }

  #live(scope: Scope): Row[] {
    return this.#rows(scope.userId ?? null).filter((row) => row.removedAt === null && isIn(scope, row));
  }

  #find(scope: Scope, sessionId: string): Row | null {
    return this.#live(scope).find((row) => hasId(row, sessionId)) ?? null;
  }

  #require(scope: Scope, sessionId: string): Row {
    return this.#find(scope, sessionId) ?? missing(sessionId);
  }

  #trash(scope: Scope, sessionId: string): Row | null {
    const rows = this.#rows(scope.userId ?? null).filter((row) => isIn(scope, row) && row.removedAt !== null);
    return rows.find((row) => hasId(row, sessionId)) ?? null;
  }

  #rows(userId: string | null): Row[] {
    return this.#db
      .prepare("SELECT doc, log FROM sessions WHERE user IS ? ORDER BY rowid")
      .all(userId)
      .map(({ doc, log }) => ({
        ...(JSON.parse(String(doc)) as Omit<Row, "tree">),
        tree: treeOf(String(log)),
      }));
  }

  #save({ tree, ...doc }: Row): void {
    this.#db
      .prepare(
        "INSERT INTO sessions VALUES (?, ?, ?, ?) ON CONFLICT (uid) DO UPDATE SET doc = excluded.doc, log = excluded.log",
      )
      .run(doc.uid, doc.userId, JSON.stringify(doc), tree.encode());
  }

  #erase(row: Row, later: (change: StoreChange) => void): void {
    this.#db.prepare("DELETE FROM sessions WHERE uid = ?").run(row.uid);
    this.#db.prepare("DELETE FROM state WHERE uid = ?").run(row.uid);
    later({ type: "purged", session: trashedOf(row) });
  }

  #blob(userId: string | null, agentId: string, sha256: string): Uint8Array | null {
    const sql = "SELECT bytes FROM blobs WHERE user IS ? AND agent = ? AND sha256 = ?";
    const found = this.#db.prepare(sql).get(userId, agentId, sha256);
    return found === undefined ? null : Uint8Array.from(found.bytes as Uint8Array);
  }

  #putBlob(userId: string | null, agentId: string, sha256: string, bytes: Uint8Array): void {
    if (this.#blob(userId, agentId, sha256) !== null) return;
    this.#db.prepare("INSERT INTO blobs VALUES (?, ?, ?, ?)").run(userId, agentId, sha256, bytes);
  }

  /** Runs one transaction. Listeners are called after the commit. */
  #write<T>(act: (later: (change: StoreChange) => void) => T): T {
    const changes: StoreChange[] = [];
    this.#db.exec("BEGIN IMMEDIATE");
    let result: T;
    try {
      result = act((change) => void changes.push(change));
      this.#db.exec("COMMIT");
    } catch (error) {
      this.#db.exec("ROLLBACK");
      throw error;
    }
    for (const change of changes)
      for (const { scope, listener } of [...this.#listeners])
        if (isIn(scope, change.session) && (scope.userId ?? null) === change.session.userId) listener(change);
    return result;
  }
}
