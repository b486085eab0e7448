import type { Clock } from "../../core/clock.ts";
import type { ContextOptions, SessionContext } from "../../core/context.ts";
import { isBookkeeping } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Plan } from "../../core/plan.ts";
import type { Lookup } from "../../core/references.ts";
import { SessionTree } from "../../core/tree.ts";
import type { ChangeFeed } from "../changes.ts";
import type {
  Appended,
  AppendItem,
  AppendOptions,
  EntryPage,
  EntryRange,
  MetaPatch,
  Scope,
  SessionInit,
  SessionPage,
  SessionQuery,
  SessionRecord,
  SessionStore,
} from "../contract.ts";
import { pageOf } from "../entry-page.ts";
import { placeOfKey } from "../key-place.ts";
import { compareInList, decodeCursor, encodeCursor, limitOf, matchesQuery } from "../listing.ts";
import { applyPatch, firstMeta } from "../meta.ts";
import { checkVersion, noSuchSession } from "../refusals.ts";
import { metaChanges, metaDraft } from "../session-meta.ts";
import type { HeldSession, SessionTable } from "./session-table.ts";
import { recordOf } from "./session-table.ts";

/** Sessions and entries in memory. Every method does its work in one go, so nothing is ever seen half-done. */
export class MemorySessions implements SessionStore {
  readonly #table: SessionTable;
  readonly #feed: ChangeFeed;
  readonly #clock: Clock;
  readonly #newId: IdSource;

  constructor(table: SessionTable, feed: ChangeFeed, clock: Clock, newId: IdSource) {
    this.#table = table;
    this.#feed = feed;
    this.#clock = clock;
    this.#newId = newId;
  }

  async create(scope: Scope, init: SessionInit): Promise<SessionRecord> {
    const options = { clock: this.#clock, newId: this.#newId };
    const id = init.sessionId === undefined ? {} : { id: init.sessionId };
    return this.#add(scope, init, () => SessionTree.create({ cwd: init.cwd, ...id }, options));
  }

  async get(scope: Scope, sessionId: string): Promise<SessionRecord | null> {
    const session = this.#table.get(scope, sessionId);
    return session === null ? null : recordOf(session);
  }

  async find(scope: Scope, lookup: Lookup): Promise<readonly SessionRecord[]> {
    return this.#table.find(scope, lookup).map(recordOf);
  }

  async list(scope: Scope, query: SessionQuery): Promise<SessionPage> {
    const limit = limitOf(query.limit);
    const behindPlace = decodeCursor(query.cursor);
    const found = [...this.#table.in(scope)]
      .map(recordOf)
      .filter((record) => matchesQuery(record, query))
      .filter((record) => behindPlace === null || compareInList(record, behindPlace) > 0)
      .sort(compareInList);
    const last = found[limit - 1];
    const nextCursor = found.length > limit && last !== undefined ? encodeCursor(last) : null;
    return { sessions: found.slice(0, limit), nextCursor, behind: 0 };
  }

  async patch(
    scope: Scope,
    sessionId: string,
    changes: MetaPatch,
    options: { ifVersion?: number } = {},
  ): Promise<SessionRecord> {
    const session = this.#table.require(scope, sessionId);
    checkVersion(session.version, options.ifVersion);
    const meta = applyPatch(session.meta, changes);
    if (meta === session.meta) return recordOf(session);
    this.#table.claim({ ...session, ...labelOf(meta) }, session);
    // Written down among the entries, as in every store: what is moved to another one takes its history along.
    session.tree.append(metaDraft(session.tree.header.id, metaChanges(session.meta, meta)));
    session.meta = meta;
    session.version += 1;
    const record = recordOf(session);
    this.#feed.publish({ type: "patched", session: record });
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
    const plan = tree.plan(items, options.expectedLeafId);
    this.#commit(session, plan);
    return { entries: plan.entries, leafId: tree.leafId };
  }

  async branch(scope: Scope, sessionId: string, targetId: string | null): Promise<SessionRecord> {
    const session = this.#table.require(scope, sessionId);
    this.#commit(session, session.tree.planBranch(targetId));
    return recordOf(session);
  }

  async fork(
    scope: Scope,
    sessionId: string,
    entryId: string | null,
    init: SessionInit,
  ): Promise<SessionRecord> {
    const { tree } = this.#table.require(scope, sessionId);
    if (entryId !== null) tree.path(entryId);
    const id = init.sessionId === undefined ? {} : { id: init.sessionId };
    return this.#add(scope, init, () => tree.fork(entryId, { cwd: init.cwd, ...id }));
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

  async remove(scope: Scope, sessionId: string): Promise<boolean> {
    const session = this.#table.get(scope, sessionId);
    if (session === null) return false;
    session.trashed = true;
    this.#feed.publish({ type: "removed", session: recordOf(session) });
    return true;
  }

  async restore(scope: Scope, sessionId: string): Promise<SessionRecord> {
    const session = this.#table.trashed(scope, sessionId) ?? noSuchSession(sessionId);
    this.#table.claim({ ...session, ...labelOf(session.meta) }, session);
    session.trashed = false;
    const record = recordOf(session);
    this.#feed.publish({ type: "restored", session: record });
    return record;
  }

  #add(scope: Scope, init: SessionInit, grow: () => SessionTree): SessionRecord {
    const { key, agentId } = placeOfKey(scope, init.key);
    const meta = firstMeta(init.meta);
    const userId = scope.userId ?? null;
    const id = init.sessionId === undefined ? {} : { sessionId: init.sessionId };
    this.#table.claim({ userId, agentId, key, ...id, ...labelOf(meta) });
    const tree = grow();
    const createdAt = Date.parse(tree.header.timestamp ?? "");
    const uid = this.#newId();
    const session: HeldSession = {
      uid,
      userId,
      agentId,
      key,
      tree,
      createdAt,
      meta,
      version: 1,
      updatedAt: createdAt,
      trashed: false,
    };
    this.#table.add(session);
    const record = recordOf(session);
    this.#feed.publish({ type: "created", session: record });
    return record;
  }

  #commit(session: HeldSession, plan: Plan): void {
    session.tree.commit(plan);
    const added = plan.nodes.map((node) => node.entry);
    if (added.length === 0) return;
    const last = added.findLast((entry) => !isBookkeeping(entry));
    if (last !== undefined) session.updatedAt = Date.parse(last.timestamp);
    this.#feed.publish({ type: "appended", session: recordOf(session), entries: added });
  }
}

function labelOf(meta: { readonly label?: string }): { label?: string } {
  return meta.label === undefined ? {} : { label: meta.label };
}
