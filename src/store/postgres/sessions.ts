import type { ContextOptions, SessionContext } from "../../core/context.ts";
import type { Entry } from "../../core/entries.ts";
import { kindOf, parseKey } from "../../core/keys.ts";
import type { Lookup } from "../../core/references.ts";
import type { Script } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { sessionRefOf } from "../../core/session-ref.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { AfterCommit } from "../../runs/contract.ts";
import type {
  Appended,
  AppendItem,
  EntryPage,
  EntryRange,
  MetaPatch,
  Redaction,
  Scope,
  SessionInit,
  SessionMeta,
  SessionPage,
  SessionQuery,
  SessionRecord,
  TrashedSession,
} from "../contract.ts";
import { decodeCursor, listPage, pageOf, sessionLimit } from "../list-query.ts";
import { trashedSession } from "../new-session.ts";
import { checkUpdatedAt, checkVersion, noSuchSession } from "../rules.ts";
import { applyPatch, metaChanges, metaDraft, planReset } from "../session-meta.ts";
import type { FencedAppend, FenceOption, WorkingSessions } from "../work.ts";
import { doNothing } from "../work.ts";
import type { BlobBytes } from "./blobs.ts";
import type { Sql } from "./database.ts";
import { driveScript } from "./drive-script.ts";
import { readContext, readEntry, readPage } from "./entry-pages.ts";
import { readWholeTree } from "./entry-rows.ts";
import { siteAtTip } from "./entry-site.ts";
import type { SessionAccess } from "./session-access.ts";
import { recordOf } from "./session-access.ts";
import { SessionAppender } from "./session-appender.ts";
import { SessionCreator } from "./session-creator.ts";
import { purgeSession, redactEntries } from "./session-erasure.ts";
import {
  countSessions,
  findRef,
  findSessions,
  listAgents,
  listSessions,
  listTrash,
} from "./session-lists.ts";
import type { SessionRow } from "./session-row.ts";
import { planAt, withPlan, writeLocked } from "./session-writes.ts";

/** Sessions and entries in PostgreSQL. A change is one transaction, and its event is published after the commit. */
export class PostgresSessions implements WorkingSessions {
  readonly #access: SessionAccess;
  readonly #appender: SessionAppender;
  readonly #creator: SessionCreator;
  readonly #blobs: BlobBytes;

  constructor(access: SessionAccess, blobs: BlobBytes) {
    this.#access = access;
    this.#appender = new SessionAppender(access);
    this.#creator = new SessionCreator(access, blobs);
    this.#blobs = blobs;
  }

  create(
    scope: Scope,
    init: SessionInit,
    act?: (session: SessionRef) => Script<AfterCommit>,
  ): Promise<SessionRecord> {
    return this.#creator.create(scope, init, act);
  }

  async get(scope: Scope, sessionId: string): Promise<SessionRecord | null> {
    const row = await this.#access.get(scope, sessionId);
    return row === null ? null : recordOf(row.session);
  }

  async find(scope: Scope, lookup: Lookup): Promise<readonly SessionRecord[]> {
    const rows = await findSessions(this.#database, scope, lookup);
    return rows.map(({ session }) => recordOf(session));
  }

  async list(scope: Scope, query: SessionQuery): Promise<SessionPage> {
    const limit = sessionLimit(query.limit);
    const place = decodeCursor(query.cursor, query.sort);
    const found = await listSessions(this.#database, scope, query, limit + 1, place);
    return listPage(found, limit, 0, query.sort);
  }

  count(scope: Scope, query: SessionQuery): Promise<number> {
    return countSessions(this.#database, scope, query);
  }

  agentIds(scope: Scope): Promise<readonly string[]> {
    return listAgents(this.#database, scope);
  }

  async patch(
    scope: Scope,
    sessionId: string,
    changes: MetaPatch,
    options: { ifVersion?: number; ifUpdatedAt?: number } = {},
  ): Promise<SessionRecord> {
    return this.#access.inOrder(scope, sessionId, async () => {
      const done = await this.#database.transact(scope.userId ?? null, async (sql) => {
        const row = await this.#access.require(sql, scope, sessionId, "write");
        const { session } = row;
        checkVersion(session.version, options.ifVersion);
        checkUpdatedAt(session, options.ifUpdatedAt);
        const meta = applyPatch(session.meta, changes);
        if (meta === session.meta) return { row, changed: null };
        const changed = metaChanges(session.meta, meta);
        return { row: await this.#patch(sql, row, changed, { meta }), changed: Object.keys(changed) };
      });
      const session = recordOf(done.row.session);
      if (done.changed === null) return session;
      this.#access.remember(done.row);
      this.#feed.publish({ type: "patched", session, changed: done.changed });
      return session;
    });
  }

  append(
    scope: Scope,
    sessionId: string,
    items: readonly AppendItem[],
    options: FencedAppend = {},
  ): Promise<Appended> {
    return this.#appender.append(scope, sessionId, items, options);
  }

  branch(
    scope: Scope,
    sessionId: string,
    targetId: string | null,
    options: FenceOption = {},
  ): Promise<SessionRecord> {
    return this.#appender.branch(scope, sessionId, targetId, options);
  }

  fork(scope: Scope, sessionId: string, entryId: string | null, init: SessionInit): Promise<SessionRecord> {
    return this.#creator.fork(scope, sessionId, entryId, init);
  }

  adopt(scope: Scope, init: SessionInit, tree: SessionTree): Promise<SessionRecord> {
    return this.#creator.adopt(scope, init, tree);
  }

  async context(
    scope: Scope,
    sessionId: string,
    options: ContextOptions = {},
  ): Promise<SessionContext | null> {
    const context = await readContext(this.#database, scope, sessionId, options);
    if (context !== "odd") return context;
    return this.#reading(scope, sessionId, async (sql, row) =>
      (await readWholeTree(sql, row, this.#access.treeOptions)).context(undefined, options),
    );
  }

  entry(scope: Scope, sessionId: string, entryId: string): Promise<Entry | null> {
    return this.#reading(scope, sessionId, (sql, row) => readEntry(sql, row, entryId));
  }

  page(scope: Scope, sessionId: string, range: EntryRange): Promise<EntryPage | null> {
    return this.#reading(scope, sessionId, async (sql, row) => {
      if (!row.isOdd || range.along === "all") return readPage(sql, row, range);
      const tree = await readWholeTree(sql, row, this.#access.treeOptions);
      return pageOf(tree.path(), tree.leafId, range);
    });
  }

  async prewarm(scope: Scope, sessionId: string): Promise<void> {
    if (this.#access.remembered(scope, sessionId) !== null) return;
    const row = await this.#access.get(scope, sessionId);
    if (row !== null) this.#access.remember(row);
  }

  async remove(scope: Scope, sessionId: string, options: { ifUpdatedAt?: number } = {}): Promise<boolean> {
    return this.#access.inOrder(scope, sessionId, async () => {
      let afterCommit = doNothing;
      const script = async (sql: Sql) => {
        const found = await this.#access.find(sql, scope, sessionId, "write");
        if (found === null) return null;
        checkUpdatedAt(found.session, options.ifUpdatedAt);
        const { spawnedBy } = found.session.meta;
        const parent =
          spawnedBy === undefined
            ? null
            : await driveScript(sql, findRef(found.session.userId, { key: spawnedBy }));
        const removing = this.#attendant.remove(sessionRefOf(found.session), parent);
        afterCommit = await driveScript(sql, removing);
        return this.#write(sql, found, { ...found, removedAt: this.#access.parts.clock.now() });
      };
      const row = await this.#database.transact(scope.userId ?? null, script, { locks: "runs" });
      if (row === null) return false;
      this.#access.forget(row.session);
      afterCommit();
      this.#feed.publish({ type: "removed", session: recordOf(row.session) });
      return true;
    });
  }

  async restore(scope: Scope, sessionId: string): Promise<SessionRecord> {
    return this.#access.inOrder(scope, sessionId, async () => {
      const row = await this.#database.transact(scope.userId ?? null, async (sql) => {
        const found = (await this.#access.lockTrashed(sql, scope, sessionId)) ?? noSuchSession(sessionId);
        return this.#write(sql, found, { ...found, removedAt: null });
      });
      this.#access.remember(row);
      const session = recordOf(row.session);
      this.#feed.publish({ type: "restored", session });
      return session;
    });
  }

  async trashed(scope: Scope): Promise<readonly TrashedSession[]> {
    const rows = await listTrash(this.#database, scope);
    return rows.map(({ session, removedAt }) => trashedSession(session, removedAt));
  }

  purge(scope: Scope, sessionId: string, options: { ifRemovedAt?: number } = {}): Promise<boolean> {
    return this.#access.inOrder(scope, sessionId, () =>
      purgeSession(this.#access, scope, sessionId, options.ifRemovedAt),
    );
  }

  async reset(
    scope: Scope,
    sessionId: string,
    { fence, ...options }: { sessionId?: string } & FenceOption = {},
  ): Promise<{ old: SessionRecord; fresh: SessionRecord }> {
    const uid = this.#access.parts.newId();
    return this.#access.inOrder(scope, sessionId, async () => {
      let afterCommit = doNothing;
      const script = async (sql: Sql) => {
        const row = await this.#access.lockHeld(sql, scope, sessionId, fence);
        const { changes, fresh } = planReset(row.session, options);
        const { label: _label, ...kept } = row.session.meta;
        const meta = { ...kept, resetFrom: row.session.key } as SessionMeta;
        const { key } = changes;
        const old = await this.#patch(sql, row, changes, { meta, key, kind: kindOf(parseKey(key)) });
        const begun = await this.#access.insert(sql, scope, fresh, uid, this.#creator.emptyTree(fresh));
        const [was, is] = [sessionRefOf(row.session), sessionRefOf(begun.session)];
        afterCommit = await driveScript(sql, this.#attendant.reset(was, is, fence !== undefined));
        return { old, changes, begun };
      };
      const done = await this.#appender.transact(scope, fence, script, { locks: "runs" });
      this.#access.remember(done.old);
      const old = recordOf(done.old.session);
      this.#feed.publish({ type: "patched", session: old, changed: Object.keys(done.changes) });
      const fresh = this.#access.publishCreated(done.begun);
      this.#feed.publish({ type: "reset", session: old, fresh });
      afterCommit();
      return { old, fresh };
    });
  }

  redact(scope: Scope, sessionId: string, entryIds: readonly string[]): Promise<Redaction> {
    return this.#access.inOrder(scope, sessionId, () =>
      redactEntries(this.#access, this.#blobs, scope, sessionId, entryIds),
    );
  }

  get #database() {
    return this.#access.parts.database;
  }

  get #attendant() {
    return this.#access.parts.attendance.attendant;
  }

  get #feed() {
    return this.#access.parts.feed;
  }

  /** Stores changed metadata, and an entry that records the change. */
  async #patch(
    sql: Sql,
    row: SessionRow,
    changes: MetaPatch,
    values: Partial<SessionRecord>,
  ): Promise<SessionRow> {
    const { clock, newId } = this.#access.parts;
    const site = siteAtTip(row);
    const plan = planAt(row, [{ draft: metaDraft(row.session.uid, changes) }], site, clock.now(), newId);
    const written = withPlan(row, plan, site, { ...values, version: row.session.version + 1 });
    await writeLocked(sql, row, written);
    return written.row;
  }

  async #write(sql: Sql, before: SessionRow, after: SessionRow): Promise<SessionRow> {
    const row = { ...after, revision: before.revision + 1 };
    await writeLocked(sql, before, { row, placed: [] });
    return row;
  }

  /** Reads from a live session in one transaction. Returns `null` if there is no such session. */
  async #reading<T>(
    scope: Scope,
    sessionId: string,
    read: (sql: Sql, row: SessionRow) => Promise<T>,
  ): Promise<T | null> {
    const row = await this.#access.get(scope, sessionId);
    if (row === null) return null;
    return this.#database.transact(scope.userId ?? null, (sql) => read(sql, row), { isRepeatable: true });
  }
}
