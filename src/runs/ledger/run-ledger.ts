import type { Clock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Emit, SkeinEvent, SkeinEventType } from "../../core/events.ts";
import { hashedId } from "../../core/hashed-id.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Provenance } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { noUsage } from "../budget.ts";
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

/** A run with what only this store needs to know of it. */
export interface RunRow extends Run {
  readonly user: string;
  readonly arrivalOf: string | null;
  readonly abortReason: string | null;
  readonly isWritten: boolean;
  /** It slept, and has not yet written what it woke for. */
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

/** What others see of it. */
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

/** A run that a client names by its own key has one id, no matter who asks and when. */
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

/**
 * What follows from a run that has ended; `null`: nothing does. It is called inside the transaction that ends the run: pure,
 * and told all of it. Of input that was merged, what was used and when it began are those of the turn that took it.
 */
export type PlanSequel = (run: Run, outcome: Outcome, facts: SequelFacts) => readonly SequelStep[];

export interface EmbeddedOptions {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly newId: IdSource;
  readonly emit: Emit;
  readonly limits: BudgetLimits;
  readonly lanes: LaneCaps;
  /** How long an owner that says nothing is taken to be alive. */
  readonly leaseMs: number;
  /** Of runs of this agent that say nothing of it; 0: none. */
  runTimeoutMs(agentId: string): number;
  /** How messages of users and channels are queued that do not say so themselves. */
  readonly queueMode: QueueMode;
  /** How long a run sleeps at the most, whatever it asks for. */
  readonly yieldTimeoutMs: number;
  /** The app of this process; empty: it defines no agent in code. */
  readonly app: string;
  /** The agent as this process has it, for a run that is restricted to `tools`; `null`: it does not have it. */
  agentHere(agentId: string, key: string, tools?: readonly string[]): AgentHere | null;
  /** The channels that this process has; those from its code belong to its app. `null`: it delivers to all. */
  channelsHere(): readonly { readonly id: string; readonly app: string | null }[] | null;
  /** Whether this process has the store of a user's sessions; where it has not, their runs wait for one that has. */
  hasStore(userId: string | null): boolean;
  /** `true`: this process claims only the requests that it accepted itself, and what these wait for. */
  readonly ownRequestsOnly: boolean;
  /** Whether an owner is known to be dead, before its lease has run out. */
  isGone(owner: string): boolean;
  /**
   * Runs `act` under the session's own write lock: `false` is `fenced`, a session that is gone `not_found`. Gives the leaf
   * as it is then.
   */
  underLock(session: SessionRef, act: () => boolean): Promise<{ readonly leafId: string | null }>;
  /** What follows from the end of a run that has a sequel. */
  readonly planSequel: PlanSequel;
  /** The session that has a key, or a session id, now; `null`: none. At once, inside a transaction too. */
  sessionAt(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): SessionRef | null;
  /** Whether the log of a session has an entry, redacted or not; `false` also for a session that does not exist. */
  hasEntry(session: SessionRef, entryId: string): Promise<boolean>;
  /** Somebody wants a run ended that an owner may be at work on. */
  stopAsked(): void;
  /** Removes the files of a folder that this session was handed, where nobody has changed them. */
  removeHanded(folder: string, sessionId: string): Promise<void>;
}

/**
 * What is synced, and what is not. Input that was acknowledged, what a run's end sends to others, sleep, an approval's
 * answer and the end of a run that nobody owns are told to nobody else: they are on the disk before anybody hears of them.
 * All other steps (claims, leases, marks) survive the death of the process without that; after a power cut the row is as it
 * was before, nobody owns it any more, and recovery goes on from the log, which is synced.
 */
export type Durability = "synced" | "unsynced";

/** The ledger of runs: transactions whose events are told once they are committed, and the reading of rows. */
export class RunLedger {
  readonly options: EmbeddedOptions;
  /** The session that the transaction in hand takes away: the store may still know it, and nothing more is given to it. */
  leaving: string | null = null;
  /** The requests (roots) that this process accepted itself, or of which it has claimed a run. */
  readonly ownRoots = new Set<string>();
  /** Sessions, by uid, in which a loop of this process has a turn open. */
  readonly ownLoopTurns = new Set<string>();
  readonly #database: Ledger;
  readonly #accept: (ledger: RunLedger, request: AcceptRequest) => Accepted;
  #pendingEvents: SkeinEvent[] | null = null;

  /** `accept`: how input is taken in, which the end of a run needs and which may end runs itself. */
  constructor(options: EmbeddedOptions, accept: (ledger: RunLedger, request: AcceptRequest) => Accepted) {
    this.options = options;
    this.#database = options.ledger;
    this.#accept = accept;
  }

  /** Takes input in, in the transaction that it is called in. */
  accept(request: AcceptRequest): Accepted {
    return this.#accept(this, request);
  }

  /** Who has a key or a session id; whoever is about to leave has none any more. */
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

  /** One transaction. Inside another one, a part of it. */
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

  /** Does something inside a transaction of somebody else's, who tells of it when that is committed. */
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

  /** Told once it is committed. */
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

  /** The row of a run that somebody says is theirs; `fenced` where it is not. */
  held({ runId, fence }: HeldRun): RunRow {
    const row = this.row(runId);
    if (row === null || row.fence !== fence || row.owner === null) throw fenced(row);
    return row;
  }

  /** The same without what is long. */
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

/** What is asked of a run at every step: neither its input nor what it came to. */
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
