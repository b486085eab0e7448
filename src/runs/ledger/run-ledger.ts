import type { Clock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Emit, SkeinEvent, SkeinEventType } from "../../core/events.ts";
import { hashedId } from "../../core/hashed-id.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Provenance } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type {
  Accepted,
  AcceptRequest,
  AgentHere,
  BudgetLimits,
  HeldRun,
  InputKind,
  Lane,
  Ledger,
  Outcome,
  QueueMode,
  Run,
  RunOptions,
  RunState,
  RunUsage,
  LedgerValue as Value,
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

/** Derives the run ID from an idempotency key, so that a key always maps to the same run ID. */
export function runIdOf(userId: string | null, idempotencyKey: string): string {
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
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly newId: IdSource;
  readonly emit: Emit;
  readonly limits: BudgetLimits;
  readonly lanes: LaneCaps;
  readonly leaseMs: number;
  /** The time limit for an agent's runs that do not set one. 0 means no limit. */
  runTimeoutMs(agentId: string): number;
  /** The mode of user and channel messages that do not set one. */
  readonly queueMode: QueueMode;
  /** The longest time a run can sleep. */
  readonly yieldTimeoutMs: number;
  /** The app of this process. Empty if it defines no agent in code. */
  readonly app: string;
  /** Returns the agent in this process, for a run restricted to `tools`, or `null` if this process does not have the agent. */
  agentHere(agentId: string, key: string, tools?: readonly string[]): AgentHere | null;
  /**
   * Returns this process's channels, or `null` if it delivers to all channels. Channels defined in the process's code
   * belong to its app.
   */
  channelsHere(): readonly { readonly id: string; readonly app: string | null }[] | null;
  /** Whether this process has the store with the user's sessions. If not, their runs wait for a process that has it. */
  hasStore(userId: string | null): boolean;
  /**
   * `true` if this process claims only requests that it has accepted itself, and the runs that those requests are
   * waiting for.
   */
  readonly ownRequestsOnly: boolean;
  /** Whether an owner is known to be dead. If so, there is no need to wait for its lease to expire. */
  isGone(owner: string): boolean;
  /** Runs `act` under the session's write lock and returns the current leaf. Throws `fenced` if `act` returns `false`. */
  underLock(session: SessionRef, act: () => boolean): Promise<{ readonly leafId: string | null }>;
  /**
   * Plans what starts when a run with a sequel ends. Called inside the transaction that ends the run. For merged input,
   * the facts are the usage and start time of the turn it joined.
   */
  planSequel(run: Run, outcome: Outcome, facts: SequelFacts): readonly SequelStep[];
  /**
   * Returns the session that currently has a key or a session ID, or `null` if there is none. Synchronous so that it
   * can be called inside a transaction.
   */
  sessionAt(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): SessionRef | null;
  /** Whether a session's log has an entry, redacted or not. `false` if the session does not exist. */
  hasEntry(session: SessionRef, entryId: string): Promise<boolean>;
  /** Called when a run has been asked to stop or a request has been adopted. */
  wakeWorker(): void;
  /** Removes a session's attachments if they are unchanged. */
  removeAttachments(folder: string, sessionId: string): Promise<void>;
}

/**
 * Synced: accepted input, deliveries when a run ends, sleep, answers to approvals, and the end of a run without an
 * owner. These are on disk before another process or a caller can see them. Unsynced: claims, leases and marks. They
 * survive a process crash. If a power failure undoes them, the run has no owner, and recovery continues from the synced
 * log.
 */
export type Durability = "synced" | "unsynced";

/** Transactions on the run tables. Events are emitted after the commit. */
export class RunLedger {
  readonly options: RunLedgerOptions;
  /**
   * The session that the current transaction is removing. The store might still find it, but it accepts no more input.
   */
  leaving: string | null = null;
  /** The roots of requests for which this process has accepted or claimed a run. */
  readonly ownRoots = new Set<string>();
  /** The uids of sessions in which this process has a loop turn open. */
  readonly ownLoopTurns = new Set<string>();
  readonly #database: Ledger;
  readonly #accept: (ledger: RunLedger, request: AcceptRequest) => Accepted;
  #pendingEvents: SkeinEvent[] | null = null;

  /** `accept` is a parameter to avoid a circular import: accepting input can end runs, and ending a run accepts input. */
  constructor(options: RunLedgerOptions, accept: (ledger: RunLedger, request: AcceptRequest) => Accepted) {
    this.options = options;
    this.#database = options.ledger;
    this.#accept = accept;
  }

  /** Accepts input within the current transaction. */
  accept(request: AcceptRequest): Accepted {
    return this.#accept(this, request);
  }

  /** Returns the session that has a key or session ID, ignoring the session that is being removed. */
  sessionAt(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): SessionRef | null {
    const found = this.options.sessionAt(userId, by);
    return found?.uid === this.leaving ? null : found;
  }

  now(): number {
    return this.options.clock.now();
  }

  /** Runs one transaction. Nested calls join the outer one. */
  change<T>(durability: Durability, act: () => T): T {
    const { result, emit } = this.collectEvents(() => {
      if (durability === "synced") return this.#database.exclusively(act);
      let made: { readonly result: T } | null = null;
      this.#database.unsynced(() => {
        made = { result: this.#database.exclusively(act) };
      });
      return (made as unknown as { readonly result: T }).result;
    });
    emit();
    return result;
  }

  /** Runs `act` inside the caller's transaction. The caller calls `emit` after its commit. */
  collectEvents<T>(act: () => T): { readonly result: T; readonly emit: () => void } {
    const outer = this.#pendingEvents;
    const mine: SkeinEvent[] = [];
    this.#pendingEvents = mine;
    let result: T;
    try {
      result = act();
    } finally {
      this.#pendingEvents = outer;
    }
    const emit = () => {
      if (outer !== null && this.#pendingEvents === outer) outer.push(...mine);
      else for (const event of mine) this.options.emit(event);
    };
    return { result, emit };
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
    this.#pendingEvents?.push({ type, at: this.now(), ...about, ...fields } as unknown as SkeinEvent);
  }

  addQueued({ session, runId, lane, kind }: Pick<Run, "session" | "runId" | "lane" | "kind">): void {
    this.addEvent("run.queued", session, runId, { lane, kind });
  }

  run(text: string, ...values: Value[]): number {
    return Number(this.#database.run(text, ...values).changes);
  }

  get(text: string, ...values: Value[]): Record<string, unknown> | undefined {
    return this.#database.sql(text).get(...values);
  }

  all(text: string, ...values: Value[]): Record<string, unknown>[] {
    return this.#database.sql(text).all(...values);
  }

  row(runId: string): RunRow | null {
    return this.rows("run_id = ?", runId)[0] ?? null;
  }

  rows(where: string, ...values: Value[]): RunRow[] {
    return this.all(`${selectRun} WHERE ${where}`, ...values).map(runOf);
  }

  /** Returns the row of a run that the caller owns. Throws `fenced` if the caller no longer owns it. */
  held({ runId, fence }: HeldRun): RunRow {
    const row = this.row(runId);
    if (row === null || row.fence !== fence || row.owner === null) throw fenced(row);
    return row;
  }

  /** Like `held`, but reads only the columns that every step needs, omitting the input and the outcome. */
  heldLine({ runId, fence }: HeldRun): HeldLine {
    const line = this.get(
      "SELECT uid, user, root, usage, woken FROM runs WHERE run_id = ? AND fence = ? AND owner IS NOT NULL",
      runId,
      fence,
    );
    if (line === undefined) throw fenced(this.row(runId));
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
