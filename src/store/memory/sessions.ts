import type { Clock } from "../../core/clock.ts";
import type { ContextOptions, SessionContext } from "../../core/context.ts";
import type { Entry } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { kindOf, parseKey } from "../../core/keys.ts";
import { parseSessionId } from "../../core/names.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Plan } from "../../core/plan.ts";
import { present } from "../../core/present.ts";
import type { Lookup } from "../../core/references.ts";
import type { Script } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { sessionRefOf } from "../../core/session-ref.ts";
import { atOnce } from "../../core/slices.ts";
import type { TreeOptions } from "../../core/tree.ts";
import { SessionTree } from "../../core/tree.ts";
import type { AfterCommit, WorkAttendant } from "../../runs/contract.ts";
import type { ChangeFeed } from "../change-feed.ts";
import type {
  Appended,
  AppendItem,
  AppendOptions,
  EntryPage,
  EntryRange,
  ListedSession,
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
import { addLineToDigest, digestOfTree } from "../digest.ts";
import {
  listPage,
  matchesQuery,
  pageOf,
  reachFilter,
  sessionLimit,
  sortSessions,
  userScope,
} from "../list-query.ts";
import { lastSaid, newSession } from "../new-session.ts";
import {
  checkRedactable,
  findRedacted,
  redactionOf,
  removedEntriesOf,
  withoutDisplayName,
  withTombstones,
} from "../redact.ts";
import { checkRemovedAt, checkUpdatedAt, checkVersion, keyInScope, noSuchSession } from "../rules.ts";
import { applyPatch, firstMeta, metaChanges, metaDraft, planReset } from "../session-meta.ts";
import { blobsOf, copyTree } from "../session-trees.ts";
import type { FencedAppend, FenceOption, WorkingSessions } from "../work.ts";
import type { MemorySession, SessionTable } from "./session-table.ts";
import { trashedOf } from "./session-table.ts";

/** Shares one agent's blob with another agent of the same user. */
export type ShareBlob = (
  from: { readonly userId: string | null; readonly agentId: string },
  agentId: string,
  sha256: string,
) => void;

/** Changes a session and its runs together. */
export interface Together {
  together<T>(act: (attendant: WorkAttendant) => Script<T>): T;
  readonly attendant: WorkAttendant;
  /** Runs a script in a ledger transaction. Creates the ledger if it does not exist. */
  inLedger<T>(script: () => Script<T>): T;
  /** Converts a fence to the function in the store contract. */
  fence(options: FenceOption): Pick<AppendOptions, "fence">;
}

/** Sessions and entries in memory. No method awaits while it changes a session, so no caller sees a partial change. */
export class MemorySessions implements WorkingSessions {
  readonly #table: SessionTable;
  readonly #feed: ChangeFeed;
  readonly #clock: Clock;
  readonly #newId: IdSource;
  readonly #forgetState: (uid: string) => void;
  readonly #shareBlob: ShareBlob;
  readonly #work: Together;

  constructor(
    table: SessionTable,
    feed: ChangeFeed,
    clock: Clock,
    newId: IdSource,
    forgetState: (uid: string) => void,
    shareBlob: ShareBlob,
    work: Together,
  ) {
    this.#work = work;
    this.#table = table;
    this.#forgetState = forgetState;
    this.#shareBlob = shareBlob;
    this.#feed = feed;
    this.#clock = clock;
    this.#newId = newId;
  }

  async create(scope: Scope, init: SessionInit): Promise<SessionRecord> {
    return this.#add(scope, init, () => this.#emptyTree(init));
  }

  /** Creates a session together with its first run. If either fails, neither is created. */
  async createWith(
    scope: Scope,
    init: SessionInit,
    act: (session: SessionRef) => Script<AfterCommit>,
  ): Promise<SessionRecord> {
    const session = this.#put(scope, init, () => this.#emptyTree(init));
    const { record } = session;
    let emit: AfterCommit;
    try {
      emit = this.#work.inLedger(() => act(sessionRefOf(record)));
    } catch (error) {
      this.#table.delete(session);
      throw error;
    }
    this.#feed.publish({ type: "created", session: record });
    emit();
    return record;
  }

  /** Returns the session that currently has a key or session ID. */
  refAt(userId: string | null, by: { key: string } | { sessionId: string }): SessionRef | null {
    const lookup: Lookup = "key" in by ? { by: "key", ...by } : { by: "sessionId", ...by };
    const [found] = this.#table.find(userId === null ? {} : { userId }, lookup);
    return found === undefined ? null : sessionRefOf(found.record);
  }

  async get(scope: Scope, sessionId: string): Promise<SessionRecord | null> {
    return this.#table.get(scope, sessionId)?.record ?? null;
  }

  async find(scope: Scope, lookup: Lookup): Promise<readonly SessionRecord[]> {
    return this.#table.find(scope, lookup).map(({ record }) => record);
  }

  async list(scope: Scope, query: SessionQuery): Promise<SessionPage> {
    const limit = sessionLimit(query.limit);
    return listPage(sortSessions(this.#listed(scope, query), query), limit, 0, query.sort);
  }

  async count(scope: Scope, query: SessionQuery): Promise<number> {
    return this.#listed(scope, query).length;
  }

  async agentIds(scope: Scope): Promise<readonly string[]> {
    return [...new Set([...this.#table.in(scope)].map(({ record }) => record.agentId))].toSorted();
  }

  async patch(
    scope: Scope,
    sessionId: string,
    changes: MetaPatch,
    options: { ifVersion?: number; ifUpdatedAt?: number } = {},
  ): Promise<SessionRecord> {
    const session = this.#table.require(scope, sessionId);
    const { record } = session;
    checkVersion(record.version, options.ifVersion);
    checkUpdatedAt(record, options.ifUpdatedAt);
    const meta = applyPatch(record.meta, changes);
    if (meta === record.meta) return record;
    const { userId, agentId, key } = record;
    this.#table.claim({ userId, agentId, key, meta }, session);
    const changed = metaChanges(record.meta, meta);
    return this.#patch(session, { meta }, changed);
  }

  async append(
    scope: Scope,
    sessionId: string,
    items: readonly AppendItem[],
    options: FencedAppend = {},
  ): Promise<Appended> {
    const session = this.#table.require(scope, sessionId);
    this.#checkFence(sessionId, options);
    const { tree } = session;
    const plan = tree.plan(items, options.expectedLeafId, options.parentId);
    this.#commit(session, plan);
    return { entries: plan.entries, leafId: tree.leafId };
  }

  #checkFence(sessionId: string, options: FenceOption): void {
    if (this.#work.fence(options).fence?.() === false) throw new SkeinError("fenced", { sessionId });
  }

  async branch(
    scope: Scope,
    sessionId: string,
    targetId: string | null,
    options: FenceOption = {},
  ): Promise<SessionRecord> {
    const session = this.#table.require(scope, sessionId);
    this.#checkFence(sessionId, options);
    // Without a fence, the session must be idle. A caller with a fence is the session's own run.
    if (options.fence === undefined)
      this.#work.together((attendant) => attendant.branch(sessionRefOf(session.record)));
    this.#commit(session, session.tree.planBranch(targetId));
    return session.record;
  }

  async fork(
    scope: Scope,
    sessionId: string,
    entryId: string | null,
    init: SessionInit,
  ): Promise<SessionRecord> {
    const source = this.#table.require(scope, sessionId);
    if (entryId !== null) source.tree.path(entryId);
    const id = init.sessionId === undefined ? {} : { id: init.sessionId };
    return this.#add(scope, init, () => {
      const tree = source.tree.fork(entryId, { cwd: init.cwd, ...id });
      const { agentId } = keyInScope(scope, init.key);
      for (const sha256 of [...tree.entries()].flatMap(blobsOf))
        this.#shareBlob(source.record, agentId, sha256);
      return tree;
    });
  }

  async context(
    scope: Scope,
    sessionId: string,
    options: ContextOptions = {},
  ): Promise<SessionContext | null> {
    const session = this.#table.get(scope, sessionId);
    return session === null ? null : session.tree.context(undefined, options);
  }

  async page(scope: Scope, sessionId: string, range: EntryRange): Promise<EntryPage | null> {
    const session = this.#table.get(scope, sessionId);
    if (session === null) return null;
    const { tree } = session;
    return pageOf(range.along === "branch" ? tree.path() : [...tree.entries()], tree.leafId, range);
  }

  async prewarm(): Promise<void> {
    // There is nothing to preload, because everything is already in memory.
  }

  async entry(scope: Scope, sessionId: string, entryId: string): Promise<Entry | null> {
    return this.#table.get(scope, sessionId)?.tree.entry(entryId) ?? null;
  }

  async remove(scope: Scope, sessionId: string, options: { ifUpdatedAt?: number } = {}): Promise<boolean> {
    const session = this.#table.get(scope, sessionId);
    if (session === null) return false;
    const { record } = session;
    checkUpdatedAt(record, options.ifUpdatedAt);
    const { spawnedBy } = record.meta;
    const parent = spawnedBy === undefined ? null : this.refAt(record.userId, { key: spawnedBy });
    const emit = this.#work.together((attendant) => attendant.remove(sessionRefOf(record), parent));
    session.removedAt = this.#clock.now();
    emit();
    this.#feed.publish({ type: "removed", session: record });
    return true;
  }

  async restore(scope: Scope, sessionId: string): Promise<SessionRecord> {
    const session = this.#table.get(scope, sessionId, "trash") ?? noSuchSession(sessionId);
    this.#table.claim(session.record, session);
    session.removedAt = null;
    this.#feed.publish({ type: "restored", session: session.record });
    return session.record;
  }

  async trashed(scope: Scope): Promise<readonly TrashedSession[]> {
    return [...this.#table.in(scope, "trash")].map(trashedOf).sort((a, b) => b.removedAt - a.removedAt);
  }

  async purge(scope: Scope, sessionId: string, options: { ifRemovedAt?: number } = {}): Promise<boolean> {
    const session = this.#table.get(scope, sessionId, "trash");
    if (session === null) return false;
    checkRemovedAt(session.removedAt ?? 0, options.ifRemovedAt);
    const { uid } = session.record;
    await this.#work.attendant.discardFiles([uid]);
    this.#work.together((attendant) => attendant.purge([uid]));
    this.#forget(session);
    return true;
  }

  /** Deletes all of a user's sessions and returns how many there were. */
  async forgetUser(userId: string): Promise<number> {
    const uidsNow = () => this.#table.ofUser(userId).map(({ record }) => record.uid);
    await this.#work.attendant.discardFiles(uidsNow());
    const uids = uidsNow();
    this.#work.together((attendant) => attendant.purge(uids, userId));
    for (const session of this.#table.ofUser(userId)) this.#forget(session);
    return uids.length;
  }

  async adopt(scope: Scope, init: SessionInit, tree: SessionTree): Promise<SessionRecord> {
    const id = init.sessionId === undefined ? this.#newId() : parseSessionId(init.sessionId);
    return this.#add(scope, init, () => atOnce(copyTree(tree, { id, cwd: init.cwd }, this.#options)));
  }

  async reset(
    scope: Scope,
    sessionId: string,
    { fence, ...options }: { sessionId?: string } & FenceOption = {},
  ): Promise<{ old: SessionRecord; fresh: SessionRecord }> {
    const session = this.#table.require(scope, sessionId);
    this.#checkFence(sessionId, present({ fence }));
    const { record } = session;
    const { changes, fresh } = planReset(record, options);
    const { userId, agentId, key } = record;
    this.#table.claim({ userId, agentId, key: changes.key, meta: {}, ...options });
    const { label: _label, ...kept } = record.meta;
    const begun = {
      ...{ uid: this.#newId(), userId, agentId, key },
      sessionId: fresh.sessionId ?? this.#newId(),
    };
    const emit = this.#work.together((attendant) =>
      attendant.reset(sessionRefOf(record), begun, fence !== undefined),
    );
    const meta = { ...kept, resetFrom: key } as SessionMeta;
    const old = this.#patch(
      session,
      { meta, key: changes.key, kind: kindOf(parseKey(changes.key)) },
      changes,
    );
    const init = { ...fresh, sessionId: begun.sessionId };
    const made = this.#add(scope, init, () => this.#emptyTree(init), begun.uid);
    this.#feed.publish({ type: "reset", session: old, fresh: made });
    emit();
    return { old, fresh: made };
  }

  async redact(scope: Scope, sessionId: string, entryIds: readonly string[]): Promise<Redaction> {
    const source = this.#table.require(scope, sessionId);
    checkRedactable(source.tree, entryIds);
    const sought = atOnce(findRedacted(Buffer.from(source.tree.encode()), new Set(entryIds)));
    const done: { session: MemorySession; entryIds: readonly string[] }[] = [];
    const sessions = new Set([source, ...this.#table.ofUser(source.record.userId)]);
    for (const session of sessions) {
      const bytes = Buffer.from(session.tree.encode());
      const found = atOnce(withTombstones(bytes, sought, this.#clock.now(), session === source));
      if (found === null) continue;
      const meta = withoutDisplayName(session.record.meta, sought.texts) ?? session.record.meta;
      session.tree = SessionTree.from(parseSession(found.bytes), this.#options);
      session.digest = digestOfTree(session.tree, session.record.createdAt);
      session.record = { ...session.record, meta, ...shownOf(session.tree) };
      done.push({ session, entryIds: found.entryIds });
      if (session.removedAt === null) this.#feed.publish({ type: "redacted", session: session.record });
    }
    const uids = [source, ...done.map(({ session }) => session)].map(({ record }) => record.uid);
    const removed = removedEntriesOf(sought, uids);
    await this.#work.attendant.discardFiles(removed);
    this.#work.together((attendant) => attendant.redact(removed));
    return redactionOf(done.map(({ session, entryIds: ids }) => ({ tree: session.tree, entryIds: ids })));
  }

  #listed(scope: Scope, query: SessionQuery): ListedSession[] {
    const kin = [...this.#table.in(userScope(scope))].map(({ record }) => record);
    const isReached = reachFilter(query.reach, kin);
    return [...this.#table.in(scope)]
      .filter(({ record }) => matchesQuery(record, query) && isReached(record))
      .map(({ record, digest }) => ({ ...record, digest }));
  }

  get #options(): TreeOptions {
    return { clock: this.#clock, newId: this.#newId };
  }

  #emptyTree({ cwd, sessionId }: SessionInit): SessionTree {
    return SessionTree.create({ cwd, ...(sessionId === undefined ? {} : { id: sessionId }) }, this.#options);
  }

  #forget(session: MemorySession): void {
    this.#table.delete(session);
    this.#forgetState(session.record.uid);
    this.#feed.publish({ type: "purged", session: trashedOf(session) });
  }

  /** Every store records metadata changes as entries, so a session that moves to another store keeps its history. */
  #patch(session: MemorySession, values: Partial<SessionRecord>, changes: MetaPatch): SessionRecord {
    const { uid, version } = session.record;
    this.#count(session, [session.tree.append(metaDraft(uid, changes))]);
    session.record = { ...session.record, ...values, version: version + 1, ...shownOf(session.tree) };
    this.#feed.publish({ type: "patched", session: session.record, changed: Object.keys(changes) });
    return session.record;
  }

  #count(session: MemorySession, entries: readonly Entry[]): void {
    const { createdAt } = session.record;
    for (const entry of entries) session.digest = addLineToDigest(session.digest, entry, createdAt);
  }

  #add(scope: Scope, init: SessionInit, grow: () => SessionTree, uid?: string): SessionRecord {
    const { record } = this.#put(scope, init, grow, uid);
    this.#feed.publish({ type: "created", session: record });
    return record;
  }

  #put(scope: Scope, init: SessionInit, grow: () => SessionTree, uid: string = this.#newId()): MemorySession {
    const { key, agentId } = keyInScope(scope, init.key);
    const meta = firstMeta(init.meta);
    const userId = scope.userId ?? null;
    const id = init.sessionId === undefined ? {} : { sessionId: init.sessionId };
    this.#table.claim({ userId, agentId, key, meta, ...id });
    const tree = grow();
    const { digest, ...record } = newSession({ uid, userId, agentId, key, meta }, tree, this.#clock.now());
    const session = { record, tree, digest, removedAt: null };
    this.#table.add(session);
    return session;
  }

  #commit(session: MemorySession, plan: Plan): void {
    const { tree, record } = session;
    tree.commit(plan);
    const added = plan.nodes.map((node) => node.entry);
    if (added.length === 0) return;
    session.record = { ...record, updatedAt: lastSaid(added) || record.updatedAt, ...shownOf(tree) };
    this.#count(session, added);
    this.#feed.publish({ type: "appended", session: session.record, entries: added });
  }
}

/** The fields of a record that are derived from the tree. */
function shownOf({ name, leafId }: SessionTree): Pick<SessionRecord, "name" | "leafId"> {
  return { name, leafId };
}
