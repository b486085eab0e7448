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

/** A run with the columns that only the ledger uses. */
export interface RunRow extends Run {
  readonly user: string;
  readonly arrivalOf: string | null;
  readonly abortReason: string | null;
  readonly isWritten: boolean;
  /** It slept, and the input that it slept for is not in the session yet. */
  readonly isWoken: boolean;
  readonly sleptAt: number | null;
  /** It has a sequel, or a caller awaits its reply. */
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

/** The run ID that an idempotency key always has. */
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
  /** The time limit for runs of an agent that do not set one; 0: no limit. */
  runTimeoutMs(agentId: string): number;
  /** For messages of users and channels that do not set one. */
  readonly queueMode: QueueMode;
  /** The longest sleep of a run. */
  readonly yieldTimeoutMs: number;
  /** The app of this process; empty: it defines no agent in code. */
  readonly app: string;
  /** The agent in this process, for a run that is restricted to `tools`; `null`: it does not have the agent. */
  agentHere(agentId: string, key: string, tools?: readonly string[]): AgentHere | null;
  /** The channels of this process; channels from its code belong to its app. `null`: it delivers to all channels. */
  channelsHere(): readonly { readonly id: string; readonly app: string | null }[] | null;
  /** Whether this process has the store of a user's sessions. Otherwise their runs wait for a process that has it. */
  hasStore(userId: string | null): boolean;
  /** `true`: this process claims only the requests that it accepted itself, and the runs that they wait for. */
  readonly ownRequestsOnly: boolean;
  /** Whether an owner is known to be dead, so that its lease need not expire. */
  isGone(owner: string): boolean;
  /** Runs `act` under the session's write lock. If it returns `false`, throws `fenced`. Returns the current leaf. */
  underLock(session: SessionRef, act: () => boolean): Promise<{ readonly leafId: string | null }>;
  /**
   * Plans what starts when a run with a sequel ends. Called inside the transaction that ends the run. Merged input has the
   * usage and the start of the turn that took it.
   */
  planSequel(run: Run, outcome: Outcome, facts: SequelFacts): readonly SequelStep[];
  /**
   * The session that has a key or a session ID now; `null`: none. Synchronous, so it can be called inside a
   * transaction.
   */
  sessionAt(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): SessionRef | null;
  /** Whether the log of a session has an entry, redacted or not; `false` also for a session that does not exist. */
  hasEntry(session: SessionRef, entryId: string): Promise<boolean>;
  /** A run was asked to stop, or a request was adopted. */
  wakeWorker(): void;
  /** Removes the unchanged attachments that a session was given. */
  removeAttachments(folder: string, sessionId: string): Promise<void>;
}

/**
 * Synced: accepted input, deliveries at a run's end, sleep, answers to approvals, and the end of a run without an owner. These
 * are on disk before another process or a caller can see them. Unsynced: claims, leases and marks. They survive the death of
 * the process. A power cut can undo them; then the run has no owner, and recovery continues from the synced log.
 */
export type Durability = "synced" | "unsynced";

/** Transactions over the tables of runs. Their events are emitted after the commit. */
export class RunLedger {
  readonly options: RunLedgerOptions;
  /** The session that the current transaction removes. The store may still find it, but it gets no more input. */
  leaving: string | null = null;
  /** The roots of requests that this process accepted itself, or of which it has claimed a run. */
  readonly ownRoots = new Set<string>();
  /** The uids of sessions in which a loop of this process has a turn open. */
  readonly ownLoopTurns = new Set<string>();
  readonly #database: Ledger;
  readonly #accept: (ledger: RunLedger, request: AcceptRequest) => Accepted;
  #pendingEvents: SkeinEvent[] | null = null;

  /** `accept` is a parameter because accepting input can end runs, and the end of a run accepts input. */
  constructor(options: RunLedgerOptions, accept: (ledger: RunLedger, request: AcceptRequest) => Accepted) {
    this.options = options;
    this.#database = options.ledger;
    this.#accept = accept;
  }

  /** Accepts input within the current transaction. */
  accept(request: AcceptRequest): Accepted {
    return this.#accept(this, request);
  }

  /** The session that has a key or session ID, without the one that is being removed. */
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

  /** Runs one transaction. Nested calls are part of the outer one. */
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

  /** Runs `act` inside a transaction of the caller, which calls `emit` after its commit. */
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

  /** Emitted after the commit. */
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

  /** The row of a run that the caller owns; otherwise throws `fenced`. */
  held({ runId, fence }: HeldRun): RunRow {
    const row = this.row(runId);
    if (row === null || row.fence !== fence || row.owner === null) throw fenced(row);
    return row;
  }

  /** Like `held`, with the columns that every step needs, without input and outcome. */
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
