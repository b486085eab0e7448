import type { Clock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Emit, SkeinEvent, SkeinEventType } from "../../core/events.ts";
import { hashedId } from "../../core/hashed-id.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Provenance } from "../../core/messages.ts";
import type {
  Durability,
  DurabilityChoice,
  FenceScript,
  Script,
  ScriptEngine,
  SqlValue,
  Whose,
} from "../../core/script.ts";
import { changeRows, queryRow, queryRows } from "../../core/script.ts";
import type { MessageDraft } from "../../core/seal.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type {
  Accepted,
  AcceptRequest,
  AfterCommit,
  AgentHere,
  BudgetLimits,
  HeldRun,
  InputKind,
  Lane,
  Outcome,
  QueueMode,
  Run,
  RunOptions,
  RunState,
  RunUsage,
} from "../contract.ts";
import type { LaneCaps } from "../lanes.ts";
import type { SequelFacts, SequelStep } from "../plan-sequel.ts";

/** A run including the columns that only the ledger uses. */
export interface RunRow extends Run {
  readonly user: string;
  readonly arrivalOf: string | null;
  readonly abortReason: string | null;
  readonly isWritten: boolean;
  /** `true` if the run has been asleep and the input it was sleeping for is not in the session yet. */
  readonly isWoken: boolean;
  readonly sleptAt: number | null;
  /** `true` if the run has a sequel or a caller is awaiting its reply. */
  readonly isFollowed: boolean;
}

const selectRun = "SELECT * FROM runs JOIN run_inputs USING (seq)";

function runOf(row: Record<string, unknown>): RunRow {
  return {
    runId: String(row.run_id),
    idempotencyKey: textOrNull(row.idem),
    session: sessionOf(row),
    seq: Number(row.seq),
    kind: row.kind as InputKind,
    lane: row.lane as Lane,
    queueMode: row.mode as QueueMode,
    message: JSON.parse(String(row.message)) as MessageDraft,
    entryId: String(row.entry_id),
    options: JSON.parse(String(row.options)) as RunOptions,
    provenance: jsonOrNull<Provenance>(row.provenance),
    root: { rootId: String(row.root), hops: Number(row.hops) },
    state: row.state as RunState,
    fence: Number(row.fence),
    owner: textOrNull(row.owner),
    leaseUntil: numberOrNull(row.lease_until),
    lost: Number(row.lost),
    createdAt: Number(row.created_at),
    startedAt: numberOrNull(row.started_at),
    endedAt: numberOrNull(row.ended_at),
    deadline: numberOrNull(row.deadline),
    outcome: jsonOrNull<Outcome>(row.outcome),
    usage: jsonOrNull<RunUsage>(row.usage) ?? noUsage,
    mergedInto: textOrNull(row.merged_into),
    keptFor: textOrNull(row.kept_for),
    startedBy: textOrNull(row.started_by),
    retryOf: textOrNull(row.retry_of),
    retriedAs: textOrNull(row.retried_as),
    app: row.app === "" ? null : String(row.app),
    requiredTools: JSON.parse(String(row.tools)) as string[],
    isSilent: Number(row.silent) === 1,
    abortRequested: Number(row.abort) === 1,
    user: String(row.user),
    arrivalOf: textOrNull(row.arrival_of),
    abortReason: textOrNull(row.abort_reason),
    isWritten: Number(row.written) === 1,
    isWoken: Number(row.woken) === 1,
    sleptAt: numberOrNull(row.slept_at),
    isFollowed: Number(row.followed) === 1,
  };
}

export function publicRun(row: RunRow): Run {
  const { user: _u, arrivalOf: _a, abortReason: _r, isWritten: _w, isWoken: _k, ...more } = row;
  const { sleptAt: _s, isFollowed: _f, ...run } = more;
  return run;
}

export function sessionOf(row: Record<string, unknown>): SessionRef {
  return {
    uid: String(row.uid),
    userId: row.user === "" ? null : String(row.user),
    agentId: String(row.agent),
    key: String(row.key),
    sessionId: String(row.session_id),
  };
}

/**
 * Derives the run ID from an idempotency key, so that a key always maps to the same run ID. Throws `invalid_arguments`
 * for a key that a database would store as another key.
 */
export function runIdOf(userId: string | null, idempotencyKey: string): string {
  if (!idempotencyKey.isWellFormed())
    throw new SkeinError("invalid_arguments", {
      problem: "The idempotency key contains half of a surrogate pair",
      advice: "Use well-formed text, such as a UUID",
    });
  return hashedId("run", userId ?? "", idempotencyKey);
}

export function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

export function jsonOrNull<T>(value: unknown): T | null {
  return value === null || value === undefined ? null : (JSON.parse(String(value)) as T);
}

export const noUsage: RunUsage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  costUsd: 0,
};

const defaultListed = 100;
const mostListed = 1000;

export function limitList(limit = defaultListed): number {
  return Math.min(Math.max(1, limit), mostListed);
}

export interface RunLedgerOptions {
  readonly engine: ScriptEngine;
  readonly clock: Clock;
  readonly newId: IdSource;
  readonly emit: Emit;
  readonly limits: BudgetLimits;
  readonly lanes: LaneCaps;
  /** The maximum number of runs that this process executes, or `null` if there is no limit. */
  readonly perProcess: number | null;
  readonly leaseMs: number;
  /** The owner of this process's loop turns. `null` if it opens none. */
  readonly owner: string | null;
  /** The time limit for an agent's runs that do not set one. 0 means no limit. */
  runTimeoutMs(agentId: string): number;
  /** The mode of user and channel messages that do not set one. */
  readonly queueMode: QueueMode;
  /** The longest time a run can sleep. */
  readonly yieldTimeoutMs: number;
  /** The app of this process. Empty if it defines no agent in code. */
  readonly app: string;
  /**
   * Returns the agent as a run restricted to `tools` would find it in this process, or `null` if this process does not
   * have the agent.
   */
  agentHere(agentId: string, key: string, tools?: readonly string[]): AgentHere | null;
  /**
   * Returns this process's channels, or `null` if it delivers to all channels. Channels defined in the process's code
   * belong to its app.
   */
  channelsHere(): readonly { readonly id: string; readonly app: string | null }[] | null;
  /** `false` if no process that could execute runs is known. */
  hasWorkers(): boolean;
  /** Whether this process has the store with the user's sessions. If not, their runs wait for a process that has it. */
  hasStore(userId: string | null): boolean;
  /**
   * `true` if this process claims only requests that it has accepted itself, and the runs that those requests are
   * waiting for.
   */
  readonly ownRequestsOnly: boolean;
  /** Whether an owner is known to be dead. If so, there is no need to wait for its lease to expire. */
  isGone(owner: string): boolean;
  /**
   * Whether a session is locked with a file. A stopped process can hold such a lock for any length of time. A database
   * server takes the lock back.
   */
  readonly hasLockFiles: boolean;
  /** `false` while an owner whose lease has expired might merely have lost its database connection for a moment. */
  canTakeOver(): boolean;
  /**
   * Runs a script in a transaction under the session's write lock and returns the current leaf. Throws `fenced` if the
   * script returns `false`.
   */
  underLock(session: SessionRef, fence: FenceScript): Promise<{ readonly leafId: string | null }>;
  acceptInput(tx: RunTransaction, request: AcceptRequest): Script<Accepted>;
  /**
   * Plans the sequel of a run. Called inside the transaction that ends the run. For merged input, the facts are the
   * usage and start time of the turn it joined.
   */
  planSequel(run: Run, outcome: Outcome, facts: SequelFacts): readonly SequelStep[];
  /**
   * Returns the session that currently has a key or a session ID, or `null` if there is none. Part of the caller's
   * transaction.
   */
  sessionAt(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): Script<SessionRef | null>;
  /** Whether a session's log has an entry, redacted or not. `false` if the session does not exist. */
  hasEntry(session: SessionRef, entryId: string): Promise<boolean>;
  /** Called when a run has been asked to stop or a request has been adopted. */
  wakeWorker(): void;
  /** Removes a session's attachments if they are unchanged. */
  removeAttachments(folder: string, sessionId: string): Promise<void>;
}

/** Transactions on the run tables. */
export class RunLedger {
  readonly options: RunLedgerOptions;
  /** The roots of requests for which this process has accepted or claimed a run. */
  readonly ownRoots = new Set<string>();

  constructor(options: RunLedgerOptions) {
    this.options = options;
  }

  now(): number {
    return this.options.clock.now();
  }

  /** In a process that claims only its own requests, adds this run's request to them. */
  adopt({ root }: Pick<Run, "root">): void {
    if (!this.options.ownRequestsOnly) return;
    this.ownRoots.add(root.rootId);
    this.options.wakeWorker(); // An existing run emits no `run.queued` event that would wake the worker.
  }

  /** Runs a script that only reads. */
  read<T>(script: (tx: RunTransaction) => Script<T>): Promise<T> {
    return this.options.engine.read(() => script(new RunTransaction(this)));
  }

  /** Runs a script in one transaction and emits its events after the commit. */
  async change<T>(
    durability: Durability | ((tx: RunTransaction) => Script<Durability>),
    whose: Whose,
    script: (tx: RunTransaction) => Script<T>,
  ): Promise<T> {
    const { begin, emit } = this.#collectEvents(script);
    const result = await this.options.engine.change(this.#choose(durability), whose, begin);
    emit();
    return result;
  }

  /**
   * Like `change`, but under the session's write lock. If the script returns `false`, its changes are
   * rolled back and the call throws `fenced`. Returns the session's current leaf.
   */
  async changeUnderLock(
    session: SessionRef,
    durability: Durability | ((tx: RunTransaction) => Script<Durability>),
    script: (tx: RunTransaction) => Script<boolean>,
    options: Pick<FenceScript, "skipsLocked" | "lockTimeoutMs"> = {},
  ): Promise<{ readonly leafId: string | null }> {
    const { begin, emit } = this.#collectEvents(script);
    return this.options.underLock(session, {
      script: begin,
      durability: this.#choose(durability),
      ...options,
      afterCommit: emit,
    });
  }

  /** Runs a script for each request and emits the events of those that were committed. */
  async changeEach<R extends { readonly session: SessionRef }, T>(
    requests: readonly R[],
    script: (tx: RunTransaction, request: R) => Script<T>,
  ): Promise<readonly PromiseSettledResult<T>[]> {
    const all = requests.map((request) => ({
      ...this.#collectEvents((tx) => script(tx, request)),
      whose: { userId: request.session.userId },
    }));
    const settled = await this.options.engine.changeEach(
      all.map(({ whose, begin }) => ({ whose, script: begin })),
    );
    for (const [index, { status }] of settled.entries()) if (status === "fulfilled") all[index]?.emit();
    return settled;
  }

  /** Runs a script in the caller's transaction. The caller calls the returned function after its commit. */
  *join(script: (tx: RunTransaction) => Script<unknown>, leaving: string | null = null): Script<AfterCommit> {
    const tx = new RunTransaction(this, leaving);
    yield* script(tx);
    return () => tx.emitEvents();
  }

  #choose(durability: Durability | ((tx: RunTransaction) => Script<Durability>)): DurabilityChoice {
    return typeof durability === "string" ? durability : () => durability(new RunTransaction(this));
  }

  /**
   * Collects a script's events. A transaction can be attempted several times, and `emit` emits only the events of the
   * last attempt.
   */
  #collectEvents<T>(script: (tx: RunTransaction) => Script<T>): { begin(): Script<T>; emit(): void } {
    let tx: RunTransaction | null = null;
    return {
      begin: () => {
        tx = new RunTransaction(this);
        return script(tx);
      },
      emit: () => tx?.emitEvents(),
    };
  }
}

/** One transaction on the run tables. Collects the events that are emitted after the commit. */
export class RunTransaction {
  readonly options: RunLedgerOptions;
  /**
   * The session that the transaction is removing. The store might still find it, but it accepts no more input.
   */
  readonly leaving: string | null;
  readonly #ledger: RunLedger;
  readonly #events: SkeinEvent[] = [];

  constructor(ledger: RunLedger, leaving: string | null = null) {
    this.options = ledger.options;
    this.leaving = leaving;
    this.#ledger = ledger;
  }

  get ownRoots(): ReadonlySet<string> {
    return this.#ledger.ownRoots;
  }

  /**
   * Accepts input. The function is an option to avoid a circular import, because accepting input can end runs, and
   * ending a run can accept input.
   */
  accept(request: AcceptRequest): Script<Accepted> {
    return this.options.acceptInput(this, request);
  }

  /** Returns the session that has a key or session ID, ignoring the session that is being removed. */
  *sessionAt(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): Script<SessionRef | null> {
    const found = yield* this.options.sessionAt(userId, by);
    return found?.uid === this.leaving ? null : found;
  }

  now(): number {
    return this.options.clock.now();
  }

  emitEvents(): void {
    for (const event of this.#events.splice(0)) this.options.emit(event);
  }

  /** Adds an event that is emitted after the commit. */
  addEvent<T extends SkeinEventType>(
    type: T,
    session: SessionRef,
    runId: string | null,
    fields: Omit<SkeinEvent<T>, "type" | "at" | "userId" | "sessionKey" | "sessionId" | "runId">,
  ): void {
    const { userId, key: sessionKey, sessionId } = session;
    const about = { userId, sessionKey, sessionId, ...(runId === null ? {} : { runId }) };
    this.#events.push({ type, at: this.now(), ...about, ...fields } as unknown as SkeinEvent);
  }

  addQueued({ session, runId, lane, kind }: Pick<Run, "session" | "runId" | "lane" | "kind">): void {
    this.addEvent("run.queued", session, runId, { lane, kind });
  }

  readonly run = changeRows;
  readonly get = queryRow;
  readonly all = queryRows;

  *row(runId: string): Script<RunRow | null> {
    return (yield* this.rows("run_id = ?", runId))[0] ?? null;
  }

  *rows(where: string, ...values: SqlValue[]): Script<RunRow[]> {
    return (yield* queryRows(`${selectRun} WHERE ${where}`, ...values)).map(runOf);
  }

  /** Returns the row of a run that the caller owns. Throws `fenced` if the caller no longer owns it. */
  *held({ runId, fence }: HeldRun): Script<RunRow> {
    const row = yield* this.row(runId);
    if (row === null || row.fence !== fence || row.owner === null) throw fenced(row);
    return row;
  }

  /** Like `held`, but reads only the columns that every step needs, omitting the input and the outcome. */
  *heldLine({ runId, fence }: HeldRun): Script<HeldLine> {
    const line = yield* queryRow(
      "SELECT uid, user, root, usage, woken FROM runs WHERE run_id = ? AND fence = ? AND owner IS NOT NULL",
      runId,
      fence,
    );
    if (line === undefined) throw fenced(yield* this.row(runId));
    return {
      runId,
      uid: String(line.uid),
      user: String(line.user),
      rootId: String(line.root),
      usage: jsonOrNull<RunUsage>(line.usage) ?? noUsage,
      isWoken: Number(line.woken) === 1,
    };
  }
}

export function* getRun(tx: RunTransaction, runId: string, userId?: string | null): Script<Run | null> {
  const row = yield* tx.row(runId);
  return row !== null && (userId === undefined || row.session.userId === userId) ? publicRun(row) : null;
}

interface HeldLine {
  readonly runId: string;
  readonly uid: string;
  readonly user: string;
  readonly rootId: string;
  readonly usage: RunUsage;
  readonly isWoken: boolean;
}

export function fenced(row: RunRow | null): SkeinError {
  return new SkeinError("fenced", { sessionId: row?.session.sessionId ?? "(unknown)" });
}
