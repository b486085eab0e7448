import { SkeinError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { formatKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import type { Lookup } from "../core/references.ts";
import type { Script } from "../core/script.ts";
import { changeOn, runOn, valueScript } from "../core/script.ts";
import type { SessionRef } from "../core/session-ref.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import { atOnce } from "../core/slices.ts";
import { spaceOf, userInSpace } from "../core/space.ts";
import type { AfterCommit, Ledger } from "../runs/contract.ts";
import { ChangeFeed } from "./change-feed.ts";
import type {
  Scope,
  SearchStore,
  SessionInit,
  SessionRecord,
  SessionStore,
  StateStore,
  Store,
  StoreChange,
} from "./contract.ts";
import type { CreatedSession, PendingChange } from "./external-changes.ts";
import { ExternalChanges } from "./external-changes.ts";
import { checkRedactable, findRedacted, removedEntriesOf } from "./redact.ts";
import { checkScope, noSuchSession, scopeOfSession, wrapPort } from "./rules.ts";
import { readTree } from "./session-trees.ts";
import { SqliteEngine } from "./sqlite-engine.ts";
import type {
  Attendance,
  FenceOption,
  LocalWork,
  WorkingSessions,
  WorkingState,
  WorkingStore,
} from "./work.ts";
import { toFenceFunction } from "./work.ts";

/** The ledger for the runs of an external store's sessions. */
export interface ExternalRuns {
  readonly ledger: Ledger;
  readonly attendance: Attendance;
  readonly newId: IdSource;
  /** Identifies this process for `isGone` in other processes. */
  readonly owner: string;
  isGone(owner: string): boolean;
  /** Erases the bytes of deleted rows from the ledger's file. */
  erase(): void;
}

type Sessions = WorkingSessions;
type Done<Name extends keyof Sessions> = Awaited<ReturnType<Sessions[Name]>>;

/**
 * Combines a store that has no support for runs with a ledger for the runs of its sessions. The two cannot change in
 * one transaction. A change that affects both is therefore recorded in the ledger, made in the store, and then applied
 * to the runs. If the process crashes or the response is lost, the next caller checks in the store whether the change
 * happened.
 */
export class ExternalStore implements WorkingStore<LocalWork> {
  readonly sessions: WorkingSessions;
  readonly search: SearchStore;
  readonly state: WorkingState;
  readonly blobs: Store["blobs"];
  readonly watch: Store["watch"];
  readonly #runs: ExternalRuns;
  readonly #name: string | null;
  readonly #inner: Store;
  readonly #ledger: ExternalChanges;
  readonly #feed = new ChangeFeed();
  /** Subscriptions to the store's changes, one per user. */
  readonly #followed = new Map<string | null, () => void>();

  /** `name` is the store's name in user IDs and uids. `null` for Skein's own store. */
  constructor(store: Store, name: string | null, runs: ExternalRuns) {
    this.#runs = runs;
    this.#name = name;
    this.#inner = store;
    this.#ledger = new ExternalChanges(runs.ledger, runs.owner, name);
    this.sessions = this.#sessionPort();
    const translate = <P extends object>(port: P): P =>
      wrapPort(port, async (invoke, scope, rest) => invoke(this.#in(scope), ...rest));
    this.search = translate(store.search);
    this.state = this.#statePort(translate(store.state));
    this.blobs = translate(store.blobs);
    this.watch = {
      subscribe: (scope, listener) =>
        store.watch.subscribe(this.#in(scope), (change) => listener(this.#outChange(change))),
    };
  }

  get work(): LocalWork {
    const { ledger, attendance } = this.#runs;
    return {
      engine: new SqliteEngine(ledger),
      ledger,
      shared: null,
      attend: (attendant) => {
        attendance.attendant = attendant;
      },
      find: (userId, by) => valueScript(this.#ledger.find(userId, by)),
      locate: async (userId, key) => (await this.#find(present({ userId }), { by: "key", key }))[0] ?? null,
      create: (scope, init, act) => this.#createWith(scope, init, act),
      watch: (listener) => this.#feed.subscribe("all users", listener),
      users: async () => this.#ledger.users(),
      erase: () => this.#runs.erase(),
      settle: async () => {
        for (const pending of this.#ledger.pending()) await this.#settleIfLeft(pending);
      },
    };
  }

  async purgeUser(userId: string): Promise<{ readonly sessions: number }> {
    checkScope({ userId });
    const { userId: named } = spaceOf(userId);
    if (named === null) throw new SkeinError("invalid_user_id", { userId: "", problem: "it is empty" });
    const uids = await this.#uidsOf(userId);
    await this.#attendant.discardFiles(uids);
    const note = this.#ledger.note({ act: "purge_user", userId, uids });
    return this.#follow(note, () => this.#inner.purgeUser(this.#in({ userId }).userId ?? named));
  }

  /** Ends the subscriptions. The caller owns the store and closes it. */
  async close(): Promise<void> {
    for (const stop of this.#followed.values()) stop();
    this.#followed.clear();
  }

  /** Runs a script in the current transaction. */
  #run<T>(script: Script<T>): T {
    return runOn(this.#runs.ledger, script);
  }

  get #attendant() {
    return this.#runs.attendance.attendant;
  }

  /** The store contract has no fence for state values, so the fence is checked before the call. */
  #statePort(inner: StateStore): WorkingState {
    const set: WorkingState["set"] = async (scope, sessionId, key, value, { fence, ...rest } = {}) => {
      if (toFenceFunction(this.#runs, present({ fence })).fence?.() === false)
        throw new SkeinError("fenced", { sessionId });
      return inner.set(scope, sessionId, key, value, rest);
    };
    return { get: inner.get, delete: inner.delete, keys: inner.keys, set };
  }

  #sessionPort(): SessionStore {
    const { sessions } = this.#inner;
    const keep = (record: SessionRecord) => this.#keep(this.#out(record));
    const keepIfFound = (record: SessionRecord | null) => (record === null ? null : keep(record));
    return {
      create: async (scope, init) => keep(await sessions.create(this.#in(scope), init)),
      get: async (scope, sessionId) => keepIfFound(await sessions.get(this.#in(scope), sessionId)),
      find: (scope, lookup) => this.#find(scope, lookup),
      list: async (scope, query) => {
        const page = await sessions.list(this.#in(scope), query);
        return { ...page, sessions: page.sessions.map((each) => this.#out(each)) };
      },
      count: async (scope, query) => sessions.count(this.#in(scope), query),
      agentIds: async (scope) => sessions.agentIds(this.#in(scope)),
      patch: async (scope, ...rest) => keep(await sessions.patch(this.#in(scope), ...rest)),
      append: (scope, ...rest) => this.#append(scope, ...rest),
      branch: (scope, ...rest) => this.#branch(scope, ...rest),
      fork: async (scope, ...rest) => keep(await sessions.fork(this.#in(scope), ...rest)),
      context: async (scope, ...rest) => sessions.context(this.#in(scope), ...rest),
      entry: async (scope, ...rest) => sessions.entry(this.#in(scope), ...rest),
      page: async (scope, ...rest) => sessions.page(this.#in(scope), ...rest),
      prewarm: async (scope, ...rest) => sessions.prewarm(this.#in(scope), ...rest),
      remove: (scope, ...rest) => this.#remove(scope, ...rest),
      restore: async (scope, sessionId) => keep(await sessions.restore(this.#in(scope), sessionId)),
      trashed: async (scope) => (await sessions.trashed(this.#in(scope))).map((each) => this.#out(each)),
      purge: (scope, ...rest) => this.#purge(scope, ...rest),
      adopt: async (scope, ...rest) => keep(await sessions.adopt(this.#in(scope), ...rest)),
      reset: (scope, ...rest) => this.#reset(scope, ...rest),
      redact: (scope, ...rest) => this.#redact(scope, ...rest),
    };
  }

  async #find(scope: Scope, lookup: Lookup): Promise<readonly SessionRecord[]> {
    const inner = lookup.by === "uid" ? { ...lookup, uid: this.#ledger.innerUid(lookup.uid) } : lookup;
    const found = (await this.#inner.sessions.find(this.#in(scope), inner)).map((each) =>
      this.#keep(this.#out(each)),
    );
    if (found.length === 0 && lookup.by === "key") this.#ledger.forgetKey(scope.userId ?? null, lookup.key);
    return found;
  }

  /**
   * An empty append under a fence claims a run or requeues a lost one. It first settles changes that other processes
   * left, and is rejected while a change of the session is pending.
   */
  async #append(
    ...[scope, sessionId, items, { fence: given, ...rest } = {}]: Parameters<Sessions["append"]>
  ) {
    const { fence } = toFenceFunction(this.#runs, present({ fence: given }));
    const inner = this.#in(scope);
    const known = { ...rest, ...present({ fence }) };
    if (fence === undefined || items.length > 0)
      return this.#inner.sessions.append(inner, sessionId, items, known);
    const userId = scope.userId ?? null;
    for (const pending of this.#ledger.pending(userId, sessionId)) await this.#settleIfLeft(pending);
    const isFree = () => this.#ledger.pending(userId, sessionId).length === 0;
    return this.#inner.sessions.append(inner, sessionId, items, {
      ...known,
      fence: () => isFree() && fence(),
    });
  }

  async #branch(...[scope, sessionId, targetId, options = {}]: Parameters<Sessions["branch"]>) {
    const session = sessionRefOf(await this.#require(scope, sessionId));
    const act = (fence: () => boolean) =>
      this.#inner.sessions.branch(this.#in(scope), sessionId, targetId, { fence });
    return this.#keep(this.#out(await this.#actIfIdle(session, options, act)));
  }

  async #reset(...[scope, sessionId, options = {}]: Parameters<Sessions["reset"]>): Promise<Done<"reset">> {
    const old = sessionRefOf(await this.#require(scope, sessionId));
    const freshId = options.sessionId ?? this.#runs.newId();
    const isOwner = options.fence !== undefined;
    const note = this.#ledger.note({ act: "reset", session: old, freshId, isOwner });
    const act = (fence: () => boolean) =>
      this.#inner.sessions.reset(this.#in(scope), sessionId, { sessionId: freshId, fence });
    const done = await this.#follow(note, () => this.#actIfIdle(old, options, act, "reset"));
    return { old: this.#out(done.old), fresh: this.#out(done.fresh) };
  }

  async #remove(...[scope, sessionId, options]: Parameters<Sessions["remove"]>): Promise<boolean> {
    const found = await this.#inner.sessions.get(this.#in(scope), sessionId);
    if (found === null) return false;
    const { meta, ...record } = this.#out(found);
    const parentKey = meta.spawnedBy ?? null;
    const note = this.#ledger.note({ act: "remove", session: sessionRefOf(record), parentKey });
    return this.#follow(note, () => this.#inner.sessions.remove(this.#in(scope), sessionId, options));
  }

  async #purge(...[scope, sessionId, options]: Parameters<Sessions["purge"]>): Promise<boolean> {
    const trash = await this.sessions.trashed(scope);
    const found = trash.find((each) => each.sessionId.toLowerCase() === sessionId.toLowerCase());
    if (found === undefined) return false;
    await this.#attendant.discardFiles([found.uid]);
    const note = this.#ledger.note({ act: "purge", session: sessionRefOf(found) });
    return this.#follow(note, () => this.#inner.sessions.purge(this.#in(scope), sessionId, options));
  }

  /** Redacts the run state first. If the store then fails, the redaction can be repeated to remove the rest. */
  async #redact(...[scope, sessionId, entryIds]: Parameters<Sessions["redact"]>): Promise<Done<"redact">> {
    const session = await this.#require(scope, sessionId);
    const tree = await readTree(this, session);
    checkRedactable(tree, entryIds);
    const sought = atOnce(findRedacted(Buffer.from(tree.encode()), new Set(entryIds)));
    const forget = async (uids: readonly string[]) => {
      const removed = removedEntriesOf(sought, uids);
      await this.#attendant.discardFiles(removed);
      changeOn(this.#runs.ledger, "synced", this.#attendant.redact(removed));
    };
    await forget([session.uid]);
    const done = await this.#inner.sessions.redact(this.#in(scope), sessionId, entryIds);
    await forget([session.uid, ...(await this.#uidsWith(scope, done.sessions))]);
    this.#runs.erase();
    return done;
  }

  async #createWith(
    scope: Scope,
    init: SessionInit,
    act: (session: SessionRef) => Script<AfterCommit>,
  ): Promise<SessionRecord> {
    checkScope(scope);
    const sessionId = init.sessionId ?? this.#runs.newId();
    const userId = scope.userId ?? null;
    for (const pending of this.#ledger.pending(userId, sessionId)) await this.#settleIfLeft(pending);
    const note = this.#ledger.note({ act: "create", userId, sessionId, agentId: scope.agentId ?? null });
    let made: SessionRecord;
    try {
      made = this.#out(await this.#inner.sessions.create(this.#in(scope), { ...init, sessionId }));
    } catch (error) {
      this.#abandon(note, error);
      throw error;
    }
    let emit: AfterCommit;
    try {
      emit = this.#ledger.change(() => {
        this.#ledger.keep(made);
        const later = this.#run(act(sessionRefOf(made)));
        this.#ledger.forget(note);
        return later;
      });
    } catch (error) {
      await this.#settleOrLeave(note);
      throw error;
    }
    emit();
    return made;
  }

  /** Makes a change in the store, then applies it to the runs. */
  async #follow<T>(note: PendingChange, change: () => Promise<T>): Promise<T> {
    let done: T;
    try {
      done = await change();
    } catch (error) {
      this.#abandon(note, error);
      throw error;
    }
    if (done === false) this.#ledger.forget(note);
    else await this.#settleOrLeave(note);
    return done;
  }

  /** If the store rejects the change, nothing has changed. After any other error, the outcome is unknown. */
  #abandon(note: PendingChange, error: unknown): void {
    if (error instanceof SkeinError && error.status < 500) this.#ledger.forget(note);
    else this.#ledger.leave(note);
  }

  async #settleIfLeft(pending: PendingChange): Promise<void> {
    if (pending.owner === null || this.#runs.isGone(pending.owner)) await this.#settle(pending);
  }

  /** If the runs cannot be updated now, the next caller updates them. No run is claimed until then. */
  async #settleOrLeave(note: PendingChange): Promise<void> {
    try {
      await this.#settle(note);
    } catch (error) {
      this.#ledger.leave(note);
      throw error;
    }
  }

  /** Applies a change that happened. Drops the record of a change that did not happen. */
  async #settle(note: PendingChange): Promise<void> {
    const { change } = note;
    switch (change.act) {
      case "create":
        await this.#removeUnused(change);
        return this.#finish(note, () => undefined);
      case "reset": {
        const fresh = await this.#inner.sessions.get(this.#inScope(change.session), change.freshId);
        if (fresh === null) return this.#finish(note, null);
        const record = this.#out(fresh);
        return this.#finish(note, () => {
          const { agentId, sessionId } = change.session;
          this.#ledger.keep({ ...change.session, key: formatKey({ form: "reset", agentId, sessionId }) });
          this.#ledger.keep(record);
          return this.#run(this.#attendant.reset(change.session, sessionRefOf(record), change.isOwner));
        });
      }
      case "remove": {
        const found = await this.#inner.sessions.get(this.#inScope(change.session), change.session.sessionId);
        if (found !== null && this.#out(found).uid === change.session.uid) return this.#finish(note, null);
        return this.#finish(note, () => {
          this.#ledger.drop([change.session.uid]);
          const { userId } = change.session;
          const parent =
            change.parentKey === null ? null : this.#ledger.find(userId, { key: change.parentKey });
          return this.#run(this.#attendant.remove(change.session, parent));
        });
      }
      case "purge": {
        const trash = await this.#inner.sessions.trashed(this.#inScope(change.session));
        const isThere = trash.some((each) => this.#out(each).uid === change.session.uid);
        if (isThere) return this.#finish(note, null);
        this.#finish(note, () => void this.#run(this.#attendant.purge([change.session.uid])));
        return this.#runs.erase();
      }
      case "purge_user": {
        const { userId, uids } = change;
        if (note.isLeft) await this.#inner.purgeUser(this.#in({ userId }).userId ?? "");
        this.#finish(note, () => {
          this.#ledger.drop(uids);
          this.#run(this.#attendant.purge(uids, userId));
        });
        return this.#runs.erase();
      }
    }
  }

  /**
   * Applies a change to the runs and drops its record, in one transaction. `follow` is `null` if the change did not
   * happen.
   */
  #finish(note: PendingChange, follow: (() => AfterCommit | undefined) | null): void {
    const emit = this.#ledger.change(() => {
      const later = follow?.();
      this.#ledger.forget(note);
      return later;
    });
    emit?.();
  }

  /**
   * Removes a session that was created for a run that was then rejected. A session that already has a run or an entry
   * is kept because another caller is using it.
   */
  async #removeUnused({ userId, agentId, sessionId }: CreatedSession): Promise<void> {
    const scope = this.#in(present({ userId, agentId }));
    const { sessions } = this.#inner;
    const found = await sessions.get(scope, sessionId);
    if (found === null) return;
    const page = await sessions.page(scope, sessionId, { along: "all", limit: 1 });
    const hasRuns = this.#run(this.#attendant.hasRuns(this.#out(found).uid));
    const isUsed = page === null || page.entries.length > 0 || hasRuns;
    if (isUsed) return;
    await sessions.remove(scope, sessionId, { ifUpdatedAt: found.updatedAt });
    await sessions.purge(scope, sessionId);
  }

  /**
   * Runs `act` under the caller's fence. Without a fence, rejects the write while the session has an active run, and
   * throws the attendant's error.
   */
  async #actIfIdle<T>(
    session: SessionRef,
    options: FenceOption,
    act: (fence: () => boolean) => Promise<T>,
    what?: "reset",
  ): Promise<T> {
    let refusal: { readonly error: unknown } | null = null;
    const checkIdle = () => {
      try {
        this.#run(this.#attendant.branch(session, what));
        return true;
      } catch (error) {
        refusal = { error };
        return false;
      }
    };
    try {
      return await act(toFenceFunction(this.#runs, options).fence ?? checkIdle);
    } catch (error) {
      throw (refusal as { readonly error: unknown } | null)?.error ?? error;
    }
  }

  async #require(scope: Scope, sessionId: string): Promise<SessionRecord> {
    return (await this.sessions.get(scope, sessionId)) ?? noSuchSession(sessionId);
  }

  async #uidsOf(userId: string): Promise<readonly string[]> {
    const trash = await this.sessions.trashed({ userId });
    return [...new Set([...this.#ledger.uidsOf(userId), ...trash.map(({ uid }) => uid)])];
  }

  async #uidsWith(scope: Scope, named: Done<"redact">["sessions"]): Promise<readonly string[]> {
    const ofUser = present({ userId: scope.userId });
    const live = await Promise.all(named.map(({ sessionId }) => this.sessions.get(ofUser, sessionId)));
    const ids = new Set(named.map(({ sessionId }) => sessionId));
    const trash = (await this.sessions.trashed(ofUser)).filter(({ sessionId }) => ids.has(sessionId));
    return [...live, ...trash].flatMap((each) => (each === null ? [] : [each.uid]));
  }

  /** Converts a scope to the store's own user IDs, and subscribes to that user's changes. */
  #in(scope: Scope): Scope {
    checkScope(scope);
    const { agentId } = scope;
    const outer = scope.userId ?? null;
    const userId = userInSpace({ ...spaceOf(outer), store: null });
    this.#followUser(outer, userId);
    return present({ userId, agentId });
  }

  #inScope(session: SessionRef): Scope {
    return this.#in(scopeOfSession(session));
  }

  #followUser(outer: string | null, inner: string | null): void {
    if (this.#followed.has(outer)) return;
    const publish = (change: StoreChange) => this.#feed.publish(this.#outChange(change));
    this.#followed.set(outer, this.#inner.watch.subscribe(present({ userId: inner }), publish));
  }

  /** Converts a session to Skein's internal user ID and uid. */
  #out<S extends { readonly uid: string; readonly userId: string | null }>(session: S): S {
    const name = this.#name;
    if (name === null) return session;
    const { namespace, userId } = spaceOf(session.userId);
    return {
      ...session,
      uid: this.#ledger.outerUid(session.uid),
      userId: userInSpace({ userId, namespace, store: name }),
    };
  }

  #outChange(change: StoreChange): StoreChange {
    if (change.type === "reset")
      return { ...change, session: this.#out(change.session), fresh: this.#out(change.fresh) };
    return { ...change, session: this.#out(change.session) } as StoreChange;
  }

  #keep(record: SessionRecord): SessionRecord {
    this.#ledger.keep(record);
    return record;
  }
}
