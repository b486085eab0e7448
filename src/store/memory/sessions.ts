import type { Clock } from "../../core/clock.ts";
import type { ContextOptions, SessionContext } from "../../core/context.ts";
import type { Entry } from "../../core/entries.ts";
import { isBookkeeping } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { parseSessionId } from "../../core/names.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Plan } from "../../core/plan.ts";
import type { Lookup } from "../../core/references.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { sessionRefOf } from "../../core/session-ref.ts";
import { atOnce } from "../../core/slices.ts";
import type { TreeOptions } from "../../core/tree.ts";
import { SessionTree } from "../../core/tree.ts";
import type { TellLater, WorkAttendant } from "../../runs/contract.ts";
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
  SessionStore,
  TrashedSession,
} from "../contract.ts";
import { countedWith, digestOfTree, emptyDigest } from "../digest.ts";
import {
  compareInList,
  decodeCursor,
  kinOf,
  listPage,
  matchesQuery,
  pageOf,
  reaching,
  sessionLimit,
} from "../list-query.ts";
import {
  checkRedactable,
  redactionOf,
  removedFrom,
  soughtIn,
  withoutDisplayName,
  withTombstones,
} from "../redact.ts";
import { checkStillRemoved, checkUnused, checkVersion, noSuchSession, placeOfKey } from "../rules.ts";
import { applyPatch, firstMeta, metaChanges, metaDraft, planReset } from "../session-meta.ts";
import { adoptedTree, blobsOf } from "../session-trees.ts";
import type { HeldSession, SessionTable } from "./session-table.ts";
import { listedOf, recordOf, trashedOf } from "./session-table.ts";

/** A blob that an agent has, another agent of the same user has too. */
export type ShareBlob = (
  from: { readonly userId: string | null; readonly agentId: string },
  agentId: string,
  sha256: string,
) => void;

/** Changes a session and the work that hangs on it together. */
export interface Together {
  together<T>(act: (attendant: WorkAttendant) => T): T;
  readonly attendant: WorkAttendant;
  /** For work that is yet to be: all of it or nothing. */
  inLedger<T>(act: () => T): T;
}

/** Sessions and entries in memory. Every method does its work in one go, so nothing is ever seen half-done. */
export class MemorySessions implements SessionStore {
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
    const id = init.sessionId === undefined ? {} : { id: init.sessionId };
    return this.#add(scope, init, () => SessionTree.create({ cwd: init.cwd, ...id }, this.#options));
  }

  /** Makes a session with the work that hangs on it, both or neither. */
  async createWith(
    scope: Scope,
    init: SessionInit,
    act: (session: SessionRef) => TellLater,
  ): Promise<SessionRecord> {
    const id = init.sessionId === undefined ? {} : { id: init.sessionId };
    const { record, tell } = this.#work.inLedger(() => {
      const session = this.#put(scope, init, () =>
        SessionTree.create({ cwd: init.cwd, ...id }, this.#options),
      );
      try {
        const made = recordOf(session);
        return { record: made, tell: act(sessionRefOf(made)) };
      } catch (error) {
        this.#table.forget(session);
        throw error;
      }
    });
    this.#feed.publish({ type: "created", session: record });
    tell();
    return record;
  }

  /** The session that has a key or an id now, as work knows it. */
  workAt(userId: string | null, by: { key: string } | { sessionId: string }): SessionRef | null {
    const lookup: Lookup = "key" in by ? { by: "key", ...by } : { by: "sessionId", ...by };
    const [found] = this.#table.find(userId === null ? {} : { userId }, lookup);
    return found === undefined ? null : sessionRefOf(recordOf(found));
  }

  async get(scope: Scope, sessionId: string): Promise<SessionRecord | null> {
    const session = this.#table.get(scope, sessionId);
    return session === null ? null : recordOf(session);
  }

  async find(scope: Scope, lookup: Lookup): Promise<readonly SessionRecord[]> {
    return this.#table.find(scope, lookup).map(recordOf);
  }

  async list(scope: Scope, query: SessionQuery): Promise<SessionPage> {
    const limit = sessionLimit(query.limit);
    const behindPlace = decodeCursor(query.cursor);
    const found = this.#listed(scope, query)
      .filter((record) => behindPlace === null || compareInList(record, behindPlace) > 0)
      .sort(compareInList);
    return listPage(found, limit, 0);
  }

  async count(scope: Scope, query: SessionQuery): Promise<number> {
    return this.#listed(scope, query).length;
  }

  async agentIds(scope: Scope): Promise<readonly string[]> {
    return [...new Set([...this.#table.in(scope)].map(({ agentId }) => agentId))].toSorted();
  }

  async patch(
    scope: Scope,
    sessionId: string,
    changes: MetaPatch,
    options: { ifVersion?: number; ifUpdatedAt?: number } = {},
  ): Promise<SessionRecord> {
    const session = this.#table.require(scope, sessionId);
    checkVersion(session.version, options.ifVersion);
    checkUnused(recordOf(session), options.ifUpdatedAt);
    const meta = applyPatch(session.meta, changes);
    if (meta === session.meta) return recordOf(session);
    this.#table.claim({ ...session, ...labelOf(meta) }, session);
    const changed = metaChanges(session.meta, meta);
    this.#patch(session, meta, changed);
    const record = recordOf(session);
    this.#feed.publish({ type: "patched", session: record, changed: Object.keys(changed) });
    return record;
  }

  async append(
    scope: Scope,
    sessionId: string,
    items: readonly AppendItem[],
    options: AppendOptions = {},
  ): Promise<Appended> {
    const session = this.#table.require(scope, sessionId);
    if (options.fence?.() === false) throw new SkeinError("fenced", { sessionId });
    const { tree } = session;
    const plan = tree.plan(items, options.expectedLeafId, options.parentId);
    this.#commit(session, plan);
    return { entries: plan.entries, leafId: tree.leafId };
  }

  async branch(
    scope: Scope,
    sessionId: string,
    targetId: string | null,
    options: Pick<AppendOptions, "fence"> = {},
  ): Promise<SessionRecord> {
    const session = this.#table.require(scope, sessionId);
    if (options.fence?.() === false) throw new SkeinError("fenced", { sessionId });
    // Whoever has a fence is the one who works on it.
    if (options.fence === undefined)
      this.#work.together((attendant) => attendant.branch(sessionRefOf(recordOf(session))));
    this.#commit(session, session.tree.planBranch(targetId));
    return recordOf(session);
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
      const { agentId } = placeOfKey(scope, init.key);
      for (const sha256 of [...tree.entries()].flatMap(blobsOf)) this.#shareBlob(source, agentId, sha256);
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
    // Everything is at hand.
  }

  async entry(scope: Scope, sessionId: string, entryId: string): Promise<Entry | null> {
    return this.#table.get(scope, sessionId)?.tree.entry(entryId) ?? null;
  }

  async remove(scope: Scope, sessionId: string, options: { ifUpdatedAt?: number } = {}): Promise<boolean> {
    const session = this.#table.get(scope, sessionId);
    if (session === null) return false;
    checkUnused(recordOf(session), options.ifUpdatedAt);
    const tell = this.#work.together((attendant) =>
      attendant.remove(sessionRefOf(recordOf(session)), this.#parentOf(session)),
    );
    session.removedAt = this.#clock.now();
    tell();
    this.#feed.publish({ type: "removed", session: recordOf(session) });
    return true;
  }

  async restore(scope: Scope, sessionId: string): Promise<SessionRecord> {
    const session = this.#table.trashed(scope, sessionId) ?? noSuchSession(sessionId);
    this.#table.claim({ ...session, ...labelOf(session.meta) }, session);
    session.removedAt = null;
    const record = recordOf(session);
    this.#feed.publish({ type: "restored", session: record });
    return record;
  }

  async trashed(scope: Scope): Promise<readonly TrashedSession[]> {
    return [...this.#table.inTrash(scope)].map(trashedOf).sort((a, b) => b.removedAt - a.removedAt);
  }

  async purge(scope: Scope, sessionId: string, options: { ifRemovedAt?: number } = {}): Promise<boolean> {
    const session = this.#table.trashed(scope, sessionId);
    if (session === null) return false;
    checkStillRemoved(session.removedAt ?? 0, options.ifRemovedAt);
    await this.#work.attendant.discardFiles([session.uid]);
    this.#work.together((attendant) => attendant.purge([session.uid]));
    this.#forget(session);
    return true;
  }

  /** All sessions of a user, for good. How many they were. */
  async forgetUser(userId: string): Promise<number> {
    await this.#work.attendant.discardFiles(this.#table.ofUser(userId).map(({ uid }) => uid));
    const sessions = this.#table.ofUser(userId);
    const uids = sessions.map(({ uid }) => uid);
    this.#work.together((attendant) => attendant.purge(uids, userId));
    for (const session of sessions) this.#forget(session);
    return sessions.length;
  }

  async adopt(scope: Scope, init: SessionInit, tree: SessionTree): Promise<SessionRecord> {
    const id = init.sessionId === undefined ? this.#newId() : parseSessionId(init.sessionId);
    return this.#add(scope, init, () => atOnce(adoptedTree(tree, { id, cwd: init.cwd }, this.#options)));
  }

  async reset(
    scope: Scope,
    sessionId: string,
    { fence, ...options }: { sessionId?: string } & Pick<AppendOptions, "fence"> = {},
  ): Promise<{ old: SessionRecord; fresh: SessionRecord }> {
    const session = this.#table.require(scope, sessionId);
    if (fence?.() === false) throw new SkeinError("fenced", { sessionId });
    const { changes, fresh } = planReset(recordOf(session), options);
    const { userId, agentId } = session;
    this.#table.claim({ userId, agentId, key: changes.key, ...options });
    const { label: _label, ...kept } = session.meta;
    const uid = this.#newId();
    const freshId = fresh.sessionId ?? this.#newId();
    const begun = { uid, userId, agentId, key: session.key, sessionId: freshId };
    const isOwner = fence !== undefined;
    const tell = this.#work.together((attendant) =>
      attendant.reset(sessionRefOf(recordOf(session)), begun, isOwner),
    );
    this.#patch(session, { ...kept, resetFrom: session.key } as SessionMeta, changes);
    session.key = changes.key;
    const old = recordOf(session);
    this.#feed.publish({ type: "patched", session: old, changed: Object.keys(changes) });
    const made = this.#add(
      scope,
      { ...fresh, sessionId: freshId },
      () => SessionTree.create({ cwd: fresh.cwd, id: freshId }, this.#options),
      uid,
    );
    this.#feed.publish({ type: "reset", session: old, fresh: made });
    tell();
    return { old, fresh: made };
  }

  async redact(scope: Scope, sessionId: string, entryIds: readonly string[]): Promise<Redaction> {
    const source = this.#table.require(scope, sessionId);
    checkRedactable(source.tree, entryIds);
    const sought = atOnce(soughtIn(Buffer.from(source.tree.encode()), new Set(entryIds)));
    const done: { session: HeldSession; entryIds: readonly string[] }[] = [];
    const sessions = new Set([source, ...this.#table.ofUser(source.userId)]);
    for (const session of sessions) {
      const bytes = Buffer.from(session.tree.encode());
      const found = atOnce(withTombstones(bytes, sought, this.#clock.now(), session === source));
      if (found === null) continue;
      const meta = withoutDisplayName(session.meta, sought.texts);
      if (meta !== null) session.meta = meta;
      session.tree = SessionTree.from(parseSession(found.bytes), this.#options);
      session.digest = digestOfTree(session.tree, session.createdAt);
      done.push({ session, entryIds: found.entryIds });
      if (session.removedAt === null) this.#feed.publish({ type: "redacted", session: recordOf(session) });
    }
    const uids = [source, ...done.map(({ session }) => session)].map(({ uid }) => uid);
    const removed = removedFrom(sought, uids);
    await this.#work.attendant.discardFiles(removed);
    this.#work.together((attendant) => attendant.redact(removed));
    return redactionOf(done.map(({ session, entryIds: ids }) => ({ tree: session.tree, entryIds: ids })));
  }

  #listed(scope: Scope, query: SessionQuery): ListedSession[] {
    const isReached = reaching(query.reach, this.#table.in(kinOf(scope)));
    return [...this.#table.in(scope)]
      .map(listedOf)
      .filter((record) => matchesQuery(record, query) && isReached(record));
  }

  get #options(): TreeOptions {
    return { clock: this.#clock, newId: this.#newId };
  }

  #forget(session: HeldSession): void {
    this.#table.forget(session);
    this.#forgetState(session.uid);
    this.#feed.publish({ type: "purged", session: trashedOf(session) });
  }

  /** Written down among the entries, as in every store: what is moved to another one takes its history along. */
  #patch(session: HeldSession, meta: SessionMeta, changes: MetaPatch): void {
    const entry = session.tree.append(metaDraft(session.uid, changes));
    session.meta = meta;
    session.version += 1;
    this.#count(session, [entry]);
  }

  #count(session: HeldSession, entries: readonly Entry[]): void {
    session.digest = entries.reduce(
      (digest, entry) => countedWith(digest, entry, session.createdAt),
      session.digest,
    );
  }

  /** The session that spawned it, if it is there. */
  #parentOf({ userId, meta }: HeldSession): SessionRef | null {
    return meta.spawnedBy === undefined ? null : this.workAt(userId, { key: meta.spawnedBy });
  }

  #add(scope: Scope, init: SessionInit, grow: () => SessionTree, uid?: string): SessionRecord {
    const record = recordOf(this.#put(scope, init, grow, uid));
    this.#feed.publish({ type: "created", session: record });
    return record;
  }

  #put(scope: Scope, init: SessionInit, grow: () => SessionTree, uid: string = this.#newId()): HeldSession {
    const { key, agentId } = placeOfKey(scope, init.key);
    const meta = firstMeta(init.meta);
    const userId = scope.userId ?? null;
    const id = init.sessionId === undefined ? {} : { sessionId: init.sessionId };
    this.#table.claim({ userId, agentId, key, ...id, ...labelOf(meta) });
    const tree = grow();
    const { timestamp } = tree.header;
    const createdAt = timestamp === undefined ? this.#clock.now() : Date.parse(timestamp) || 0;
    const session: HeldSession = {
      uid,
      userId,
      agentId,
      key,
      tree,
      createdAt,
      meta,
      version: 1,
      updatedAt: Math.max(createdAt, lastSaid(tree.entries())),
      digest: emptyDigest,
      removedAt: null,
    };
    session.digest = digestOfTree(session.tree, session.createdAt);
    this.#table.add(session);
    return session;
  }

  #commit(session: HeldSession, plan: Plan): void {
    session.tree.commit(plan);
    const added = plan.nodes.map((node) => node.entry);
    if (added.length === 0) return;
    session.updatedAt = lastSaid(added) || session.updatedAt;
    this.#count(session, added);
    this.#feed.publish({ type: "appended", session: recordOf(session), entries: added });
  }
}

/** The time of the last entry that is conversation; 0: none is. */
function lastSaid(entries: Iterable<Entry>): number {
  let time = 0;
  for (const entry of entries) if (!isBookkeeping(entry)) time = Date.parse(entry.timestamp) || time;
  return time;
}

function labelOf(meta: { readonly label?: string }): { label?: string } {
  return meta.label === undefined ? {} : { label: meta.label };
}
