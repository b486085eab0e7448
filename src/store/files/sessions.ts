import type { ContextOptions, SessionContext } from "../../core/context.ts";
import type { Entry } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { kindOf, parseKey } from "../../core/keys.ts";
import { parseSessionId, sessionIdProblem } from "../../core/names.ts";
import type { Plan } from "../../core/plan.ts";
import { targetOf } from "../../core/plan.ts";
import { present } from "../../core/present.ts";
import type { Lookup } from "../../core/references.ts";
import type { Script } from "../../core/script.ts";
import { runOn } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { sessionRefOf } from "../../core/session-ref.ts";
import { Slices } from "../../core/slices.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { AfterCommit } from "../../runs/contract.ts";
import type { ChangeFeed } from "../change-feed.ts";
import type {
  Appended,
  AppendItem,
  EntryPage,
  EntryRange,
  MetaPatch,
  Redaction,
  Scope,
  SessionInit,
  SessionPage,
  SessionQuery,
  SessionRecord,
  TrashedSession,
} from "../contract.ts";
import { decodeCursor, entryLimit, listPage, pageOf, sessionLimit } from "../list-query.ts";
import {
  checkRemovedAt,
  checkUpdatedAt,
  checkVersion,
  inScope,
  keyInScope,
  noSuchSession,
} from "../rules.ts";
import { applyPatch, changedIn, firstMeta, metaChanges, metaDraft, planReset } from "../session-meta.ts";
import { copyTree } from "../session-trees.ts";
import type { FencedAppend, FenceOption, WorkingSessions } from "../work.ts";
import { toFenceFunction } from "../work.ts";
import { copyBlobs } from "./blobs.ts";
import { withDiskCode } from "./disk.ts";
import { purgeSession, purgeUser, redactEntries } from "./erase.ts";
import { checkForkSource, finishFork } from "./fork-claims.ts";
import { countSessions, listSessions, pageByIndex, recentPage } from "./index-lists.ts";
import type { HomeFor } from "./layout.ts";
import type { LogBranch } from "./log-branch.ts";
import { FileClosed } from "./log-file.ts";
import { thisProcess } from "./process-identity.ts";
import type { SessionCatalog } from "./session-catalog.ts";
import type { SessionFile } from "./session-file.ts";
import { refuseOtherOwner } from "./session-files.ts";
import type { LogSummary, SessionRow, SessionState } from "./work-db.ts";
import { isVisible, recordOf } from "./work-db.ts";

/** Finds and adopts an unclaimed session file. */
type AdoptByName = (scope: Scope, sessionId: string) => Promise<SessionRow | null>;

/** How long a session is considered prewarmed. */
const warmMs = 45_000;
const mostWarm = 10_000;

/**
 * Stores sessions and entries in files. Conversations are in the logs, claims in `work.db`, and lists in `index.db`.
 */
export class FileSessions implements WorkingSessions {
  readonly #catalog: SessionCatalog;
  readonly #feed: ChangeFeed;

  readonly #homeFor: HomeFor;
  readonly #adoptByName: AdoptByName;
  readonly #warmed = new Map<string, number>();

  constructor(catalog: SessionCatalog, feed: ChangeFeed, homeFor: HomeFor, adoptByName: AdoptByName) {
    this.#catalog = catalog;
    this.#feed = feed;
    this.#homeFor = homeFor;
    this.#adoptByName = adoptByName;
  }

  async create(scope: Scope, init: SessionInit): Promise<SessionRecord> {
    const row = await this.#accept(scope, init, "pending");
    return this.#orRelease(row, () =>
      this.#catalog.using(row, (file) => this.#announce("created", row, file)),
    );
  }

  /**
   * Creates a session together with its first run. The session exists after the commit. If its log cannot be written at
   * that point, the log is created on first use.
   */
  async createWith(
    scope: Scope,
    init: SessionInit,
    act: (session: SessionRef) => Script<AfterCommit>,
  ): Promise<SessionRecord> {
    const row = await this.#rowFor(scope, init, "pending");
    const { work, settings } = this.#catalog;
    const paths = this.#catalog.pathsOf(row);
    const emit = await this.#claimed(() =>
      work.claim(row, () => {
        refuseOtherOwner(paths, settings.disk, row.uid);
        return act(sessionRefOf(row));
      }),
    );
    const record = await this.#record(row).catch((error: unknown) => {
      const note = `its log could not be created and will be created on first use: ${(error as Error).message}`;
      settings.report({ kind: "not_taken_in", file: paths.log, note });
      return recordOf(row);
    });
    this.#feed.publish({ type: "created", session: record });
    emit();
    return record;
  }

  async get(scope: Scope, sessionId: string): Promise<SessionRecord | null> {
    const row = this.#row(scope, sessionId);
    if (row !== null) return this.#record(row);
    const adopted = await this.#adopted(scope, sessionId);
    if (adopted === null) return null;
    return this.#catalog.using(adopted, (file) => this.#announce("created", adopted, file));
  }

  async find(scope: Scope, lookup: Lookup): Promise<readonly SessionRecord[]> {
    const rows = this.#catalog
      .findRows(scope.userId ?? null, lookup)
      .filter((row) => isVisible(row) && inScope(scope, row));
    if (rows.length === 0 && lookup.by === "sessionId") {
      const found = await this.get(scope, lookup.sessionId);
      return found === null ? [] : [found];
    }
    return Promise.all(rows.map((row) => this.#knownRecord(row)));
  }

  async list(scope: Scope, query: SessionQuery): Promise<SessionPage> {
    const limit = sessionLimit(query.limit);
    const place = decodeCursor(query.cursor, query.sort);
    const behind = await this.#catalog.feed.catchUp();
    const found = listSessions(this.#catalog.index, scope, query, limit + 1, place);
    return listPage(found, limit, behind, query.sort);
  }

  async count(scope: Scope, query: SessionQuery): Promise<number> {
    await this.#catalog.feed.catchUp();
    return countSessions(this.#catalog.index, scope, query);
  }

  async agentIds(scope: Scope): Promise<readonly string[]> {
    const agentIds = this.#catalog.work.agentIdsOf(scope.userId ?? null);
    return agentIds.filter((agentId) => scope.agentId === undefined || agentId === scope.agentId);
  }

  async patch(
    scope: Scope,
    sessionId: string,
    changes: MetaPatch,
    options: { ifVersion?: number; ifUpdatedAt?: number } = {},
  ): Promise<SessionRecord> {
    const row = this.#require(scope, sessionId);
    return this.#catalog.using(row, async (file) => {
      const plan = await this.#patch(row, file, changes, options);
      if (plan.nodes.length === 0) return recordOf(row, file.latest);
      return this.#announcePatched(row, file, plan.entries.flatMap(changedIn));
    });
  }

  async append(
    scope: Scope,
    sessionId: string,
    items: readonly AppendItem[],
    options: FencedAppend = {},
  ): Promise<Appended> {
    const row = this.#catalog.rowInBurst(scope, sessionId) ?? this.#require(scope, sessionId);
    const fence = toFenceFunction(this.#catalog.work, options);
    const { expectedLeafId, parentId } = options;
    const needs = [...items.flatMap(idsAskedFor), ...(typeof parentId === "string" ? [parentId] : [])];
    const lockTimeoutMs = typeof options.fence === "object" ? options.fence.lockTimeoutMs : undefined;
    const writing = { ...this.#catalog.marking(row), ...fence, ...present({ lockTimeoutMs }), needs };
    return this.#catalog.using(row, async (file) => {
      // For an empty append, the leaf is read under the lock, because other processes can write once the lock is
      // released.
      let leafId: string | null = null;
      const widening = file.loadFor(needs);
      if (widening !== null) await widening;
      const plan = await file.write((tree) => {
        leafId = file.leafId;
        return tree.plan(items, expectedLeafId, parentId);
      }, writing);
      this.#appended(row, file, plan);
      return { entries: plan.entries, leafId: plan.nodes.length === 0 ? leafId : file.leafId };
    });
  }

  async branch(
    scope: Scope,
    sessionId: string,
    targetId: string | null,
    options: FenceOption = {},
  ): Promise<SessionRecord> {
    const row = this.#require(scope, sessionId);
    const needs = targetId === null ? [] : [targetId];
    return this.#catalog.using(row, async (file) => {
      const { work } = this.#catalog;
      const writing = { ...this.#catalog.marking(row), ...toFenceFunction(work, options), needs };
      const widening = file.loadFor(needs);
      if (widening !== null) await widening;
      const plan = await file.write((tree) => {
        // Without a fence, the session must be idle. A caller with a fence is the session's own run.
        if (options.fence === undefined)
          runOn(work.ledger, work.attendance.attendant.branch(sessionRefOf(row)));
        return tree.planBranch(targetId);
      }, writing);
      this.#appended(row, file, plan);
      return recordOf(row, file.latest);
    });
  }

  async fork(
    scope: Scope,
    sessionId: string,
    entryId: string | null,
    init: SessionInit,
  ): Promise<SessionRecord> {
    const from = this.#require(scope, sessionId);
    return this.#catalog.using(from, async (source) => {
      const branch = entryId === null ? null : await source.findBranch(entryId);
      if (branch === null) await source.loadWhole();
      if (branch === null && entryId !== null) source.whole.path(entryId);
      const parentSession = this.#catalog.pathsOf(from).working;
      const row = await this.#accept(scope, init, "forking", { parentSession }, () =>
        checkForkSource(this.#catalog.work, from),
      );
      const copied = branch === null ? null : await this.#copyBranch(from, branch, row);
      if (copied !== null) return copied;
      const tree = await this.#orRelease(row, async () => {
        await source.loadWhole();
        return new Slices().run(source.whole.forking(entryId, { id: row.sessionId, cwd: init.cwd }));
      });
      await this.#orRelease(row, () => copyBlobs(this.#catalog.settings, from, row, tree));
      return this.#finishFork(row, (announce) => this.#catalog.create(row, tree, announce));
    });
  }

  async adopt(scope: Scope, init: SessionInit, tree: SessionTree): Promise<SessionRecord> {
    const { timestamp, parentSession } = tree.header;
    const begun = {
      ...(parentSession === undefined ? {} : { parentSession }),
      ...(timestamp === undefined ? {} : { createdAt: Date.parse(timestamp) || 0 }),
    };
    const row = await this.#accept(scope, init, "forking", begun);
    const { clock, newId } = this.#catalog.settings;
    const adopted = await this.#orRelease(row, () =>
      new Slices().run(copyTree(tree, { id: row.sessionId, cwd: init.cwd }, { clock, newId })),
    );
    return this.#finishFork(row, (announce) => this.#catalog.create(row, adopted, announce));
  }

  async reset(
    scope: Scope,
    sessionId: string,
    { fence, ...options }: { sessionId?: string } & FenceOption = {},
  ): Promise<{ old: SessionRecord; fresh: SessionRecord }> {
    const row = this.#require(scope, sessionId);
    const { work } = this.#catalog;
    const made = await this.#rowFor(scope, planReset(await this.#knownRecord(row), options).fresh, "pending");
    let fresh = made;
    let changes: MetaPatch | null = null;
    // Decided under the lock, based on the current metadata. The commit in `work.db` is final.
    const decide = (record: SessionRecord): MetaPatch => {
      const planned = planReset(record, options);
      const meta = firstMeta(planned.fresh.meta);
      fresh = { ...made, label: meta.label ?? null, first: { ...made.first, meta } };
      work.reset(row.uid, planned.changes, fresh, fence !== undefined);
      changes = planned.changes;
      return changes;
    };
    const fenced = toFenceFunction(work, present({ fence }));
    const writing = this.#catalog.using(row, async (file) => {
      const write = (tree: SessionTree) =>
        tree.plan([{ draft: metaDraft(row.uid, decide(recordOf(row, file.latest))) }]);
      await file.write(write, { ...this.#catalog.marking(row), ...fenced });
      work.clearTodo(row.uid);
    });
    await writing.catch(async (error: unknown) => {
      if (changes !== null) return;
      // A run needs the log, so only a reset without one can do without it.
      if (fence !== undefined || !this.#catalog.isLost(row, error)) throw error;
      await this.#catalog.mover.underLock(row, undefined, async () => void decide(this.#lostRecord(row)));
    });
    const moved = work.byUid(row.uid) ?? row;
    const old = await this.#knownRecord(moved);
    this.#feed.publish({ type: "patched", session: old, changed: Object.keys(changes ?? {}) });
    const begun = await this.#catalog.using(fresh, (file) => this.#announce("created", fresh, file));
    this.#feed.publish({ type: "reset", session: old, fresh: begun });
    return { old, fresh: begun };
  }

  async context(
    scope: Scope,
    sessionId: string,
    options: ContextOptions = {},
  ): Promise<SessionContext | null> {
    const row = this.#row(scope, sessionId);
    if (row === null) return null;
    return this.#catalog.using(row, async (file) => {
      await file.loadForContext(options);
      return file.context(options);
    });
  }

  async page(scope: Scope, sessionId: string, range: EntryRange): Promise<EntryPage | null> {
    const row = this.#row(scope, sessionId);
    if (row === null) return null;
    const limited = { ...range, limit: entryLimit(range.limit) };
    return this.#catalog.using(row, async (file) => {
      const recent = recentPage(file.recent, limited);
      if (recent !== null) return recent;
      await this.#catalog.bringUp(row, file);
      const page = await pageByIndex(this.#catalog.index, row.uid, file, limited);
      if (page !== null) return page;
      await file.loadWhole();
      const tree = file.whole;
      return pageOf(range.along === "branch" ? tree.path() : [...tree.entries()], tree.leafId, range);
    });
  }

  async entry(scope: Scope, sessionId: string, entryId: string): Promise<Entry | null> {
    const row = this.#row(scope, sessionId);
    return row === null ? null : this.#catalog.entry(row, entryId);
  }

  async remove(scope: Scope, sessionId: string, options: { ifUpdatedAt?: number } = {}): Promise<boolean> {
    const row = this.#row(scope, sessionId);
    if (row === null) return false;
    const record = await this.#knownRecord(row);
    const check = (log?: LogSummary) => checkUpdatedAt(recordOf(row, log), options.ifUpdatedAt);
    if (!(await this.#catalog.trash(row, check))) return false;
    this.#feed.publish({ type: "removed", session: record });
    return true;
  }

  async restore(scope: Scope, sessionId: string): Promise<SessionRecord> {
    const row = this.#trashedRow(scope, sessionId) ?? noSuchSession(sessionId);
    const advice = "The session is still in the trash. Check the disk and the permissions, then try again";
    await this.#changing(row, advice, () => this.#catalog.mover.moveOutOfTrash(row));
    const live: SessionRow = { ...row, state: "live" };
    return this.#catalog.using(live, (file) => this.#announce("restored", live, file));
  }

  async trashed(scope: Scope): Promise<readonly TrashedSession[]> {
    return this.#catalog.work
      .trashedOf(scope.userId ?? null)
      .filter((row) => inScope(scope, row))
      .map((row) => this.#trashedOf(row))
      .sort((a, b) => b.removedAt - a.removedAt);
  }

  async purge(scope: Scope, sessionId: string, options: { ifRemovedAt?: number } = {}): Promise<boolean> {
    const row = this.#trashedRow(scope, sessionId);
    if (row === null) return false;
    const session = this.#trashedOf(row);
    const advice = "Some of its files might remain. Check the disk and the permissions, then try again";
    const check = (now: SessionRow) => checkRemovedAt(now.removedAt ?? 0, options.ifRemovedAt);
    const isPurged = await this.#changing(row, advice, () => purgeSession(this.#catalog, row, check));
    if (isPurged) this.#feed.publish({ type: "purged", session });
    return isPurged;
  }

  async redact(scope: Scope, sessionId: string, entryIds: readonly string[]): Promise<Redaction> {
    const row = this.#require(scope, sessionId);
    const { redaction, changed } = await redactEntries(this.#catalog, row, entryIds);
    for (const each of changed) {
      await this.#catalog.using(each, (file) => this.#announce("redacted", each, file));
    }
    return redaction;
  }

  /** Deletes all of a user's data. State and blobs are in the user's folder. */
  async purgeUser(userId: string): Promise<{ sessions: number }> {
    const rows = await purgeUser(this.#catalog, userId, this.#homeFor(userId));
    for (const row of rows) this.#feed.publish({ type: "purged", session: this.#trashedOf(row) });
    return { sessions: rows.length };
  }

  async prewarm(scope: Scope, sessionId: string): Promise<void> {
    const row = this.#row(scope, sessionId);
    const now = this.#catalog.now();
    if (row === null || now - (this.#warmed.get(row.uid) ?? 0) < warmMs) return;
    if (this.#warmed.size > mostWarm) this.#warmed.clear();
    this.#warmed.set(row.uid, now);
    await this.#catalog.using(row, () => undefined);
  }

  /** Claims the key, ID and label. From then on, the session exists even if the process crashes. */
  async #accept(
    scope: Scope,
    init: SessionInit,
    state: SessionState,
    begun: { parentSession?: string; createdAt?: number } = {},
    act?: () => Script<AfterCommit>,
  ): Promise<SessionRow> {
    const row = await this.#rowFor(scope, init, state, begun);
    await this.#claimed(() => this.#catalog.work.claim(row, act));
    return row;
  }

  /** If an abandoned fork holds the names, releases them or completes its session, and then retries the claim. */
  async #claimed<T>(claim: () => T): Promise<T> {
    try {
      return claim();
    } catch (error) {
      const isTaken = error instanceof SkeinError && error.code === "conflict";
      if (!isTaken || !(await this.#catalog.mover.finishAbandoned(this.#catalog.now()))) throw error;
      return claim();
    }
  }

  async #rowFor(
    scope: Scope,
    init: SessionInit,
    state: SessionState,
    begun: { parentSession?: string; createdAt?: number } = {},
  ): Promise<SessionRow> {
    const { key, agentId } = keyInScope(scope, init.key);
    const sessionId = init.sessionId === undefined ? this.#catalog.newId() : parseSessionId(init.sessionId);
    const meta = firstMeta(init.meta);
    const userId = scope.userId ?? null;
    const home = this.#homeFor(userId);
    await this.#catalog.recordOwner(home, userId);
    const now = this.#catalog.now();
    const { createdAt = now, ...parent } = begun;
    const claim = state === "forking" ? { maker: thisProcess(), claimedAt: now } : {};
    return {
      uid: this.#catalog.newId(),
      userId,
      agentId,
      key,
      sessionId,
      label: meta.label ?? null,
      createdAt,
      state,
      home,
      first: { cwd: init.cwd, meta, ...parent, ...claim },
      removedAt: null,
      todo: null,
    };
  }

  /**
   * Returns `null` if the log has been replaced since the branch was found, or if the fork belongs to another agent. In
   * that case, the entries must be parsed to find the blobs to copy.
   */
  async #copyBranch(from: SessionRow, branch: LogBranch, row: SessionRow): Promise<SessionRecord | null> {
    if (row.home !== from.home || row.agentId !== from.agentId) return null;
    const log = await this.#orRelease(row, async () => this.#catalog.openLog(from));
    try {
      if (log?.stat().identity !== branch.identity) return null;
      return await this.#finishFork(row, (announce) => this.#catalog.copy(row, branch, log, announce));
    } finally {
      log?.close();
    }
  }

  #finishFork(
    row: SessionRow,
    make: (announce: (file: SessionFile) => SessionRecord) => Promise<SessionRecord>,
  ): Promise<SessionRecord> {
    return this.#orRelease(row, () =>
      make((file) => {
        finishFork(this.#catalog.work, row);
        return this.#announce("created", row, file);
      }),
    );
  }

  /** If the disk fails, throws `write_failed` with the session's file. */
  async #changing<T>(row: SessionRow, advice: string, change: () => Promise<T>): Promise<T> {
    try {
      return await change();
    } catch (error) {
      throw withDiskCode(error, "write_failed", this.#catalog.pathsOf(row).log, advice);
    }
  }

  /** Releases the claim if the files cannot be written. */
  async #orRelease<T>(row: SessionRow, make: () => Promise<T>): Promise<T> {
    try {
      return await make();
    } catch (error) {
      this.#catalog.work.release(row.uid);
      if (error instanceof SkeinError || error instanceof FileClosed) throw error;
      const advice = "Nothing was created. Free up disk space, then try again";
      throw new SkeinError(
        "write_failed",
        { file: this.#catalog.pathsOf(row).log, problem: (error as Error).message, advice },
        { cause: error },
      );
    }
  }

  async #patch(
    row: SessionRow,
    file: SessionFile,
    changes: MetaPatch,
    options: { ifVersion?: number; ifUpdatedAt?: number },
  ): Promise<Plan> {
    const { work } = this.#catalog;
    const writing = file.write((tree) => {
      const { meta, version } = file.meta;
      checkVersion(version, options.ifVersion);
      checkUpdatedAt(recordOf(row, file.latest), options.ifUpdatedAt);
      const next = applyPatch(meta, changes);
      if (next === meta) return tree.plan([]);
      if (next.label !== meta.label) work.claimLabel(row.uid, next.label ?? null);
      return tree.plan([{ draft: metaDraft(row.uid, metaChanges(meta, next)) }]);
    }, this.#catalog.marking(row));
    return writing.catch((error: unknown) => {
      // The log is authoritative, so the claim is changed to match it unless another session has since taken the label.
      const label = file.meta.meta.label ?? null;
      const claimed = work.byUid(row.uid);
      const isFree = label === null || work.byLabel(row.userId, row.agentId, label) === null;
      if (claimed !== null && label !== claimed.label && isFree) work.claimLabel(row.uid, label);
      throw error;
    });
  }

  /** Adopts another program's file if an unknown session ID matches it. */
  async #adopted(scope: Scope, sessionId: string): Promise<SessionRow | null> {
    if (sessionIdProblem(sessionId) !== null) return null;
    if (this.#catalog.work.byId(scope.userId ?? null, sessionId) !== null) return null;
    return this.#adoptByName(scope, sessionId);
  }

  #record(row: SessionRow): Promise<SessionRecord> {
    return this.#catalog.using(row, (file) => recordOf(row, file.latest));
  }

  /** Like `#record`, but also finds a session whose log is missing so that it can be removed or reset. */
  async #knownRecord(row: SessionRow): Promise<SessionRecord> {
    try {
      return await this.#record(row);
    } catch (error) {
      if (!this.#catalog.isLost(row, error)) throw error;
      return this.#lostRecord(row);
    }
  }

  #lostRecord(row: SessionRow): SessionRecord {
    return recordOf(row, this.#catalog.indexedSummary(row));
  }

  #trashedRow(scope: Scope, sessionId: string): SessionRow | null {
    const row = this.#catalog.work.byId(scope.userId ?? null, sessionId);
    return row !== null && row.state === "trashed" && inScope(scope, row) ? row : null;
  }

  #trashedOf(row: SessionRow): TrashedSession {
    const { uid, userId, agentId, key, sessionId, label, removedAt } = row;
    const bytes = this.#catalog.settings.disk.stat(this.#catalog.pathsOf(row).log)?.size ?? 0;
    const kind = kindOf(parseKey(key));
    return { uid, userId, agentId, key, kind, sessionId, label, removedAt: removedAt ?? 0, bytes };
  }

  #row(scope: Scope, sessionId: string): SessionRow | null {
    const row = this.#catalog.work.byId(scope.userId ?? null, sessionId);
    return row !== null && isVisible(row) && inScope(scope, row) ? row : null;
  }

  #require(scope: Scope, sessionId: string): SessionRow {
    return this.#row(scope, sessionId) ?? noSuchSession(sessionId);
  }

  #appended(row: SessionRow, file: SessionFile, plan: Plan): void {
    if (plan.nodes.length === 0 || !this.#feed.hasSubscribers) return;
    const entries = plan.nodes.map((node) => node.entry);
    this.#feed.publish({ type: "appended", session: recordOf(row, file.latest), entries });
  }

  #announce(type: "created" | "restored" | "redacted", row: SessionRow, file: SessionFile): SessionRecord {
    const session = recordOf(row, file.latest);
    this.#feed.publish({ type, session });
    return session;
  }

  #announcePatched(row: SessionRow, file: SessionFile, changed: readonly string[]): SessionRecord {
    const session = recordOf(row, file.latest);
    this.#feed.publish({ type: "patched", session, changed });
    return session;
  }
}

/** Returns an item's ID and the ID that it refers to. */
function idsAskedFor(item: AppendItem): string[] {
  return [item.id, targetOf(item.draft)].filter((each) => typeof each === "string");
}
