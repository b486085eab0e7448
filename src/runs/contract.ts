import type { MessageDraft } from "../core/seal.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { RemovedTexts } from "../core/tombstone.ts";
import type {
  Accepted,
  AcceptRequest,
  Approval,
  ApprovalQuery,
  ApprovalRequest,
  BudgetFigures,
  Child,
  Claim,
  HeldRun,
  LaneCount,
  OutboxRequest,
  OutboxRow,
  OutboxState,
  Outcome,
  ReplyWait,
  RootRef,
  Run,
  RunQuery,
  RunState,
  RunUsage,
  RunWaits,
  SessionWork,
  ThreadRef,
  WaitEntered,
} from "./run.ts";

export type * from "./run.ts";

/** An agent as this process has it. */
export interface AgentHere {
  /** `null`: defined by configuration, which any process may have. */
  readonly app: string | null;
  /** The agent's own tools that a run would be offered. */
  readonly tools: readonly string[];
}

/** Called once the transaction is committed, to emit its events. */
export type AfterCommit = () => void;

/**
 * Work that is not yet part of a conversation: accepted input, runs, waits, approvals, budgets. Every method is one
 * transaction. A step that the state table (`states.ts`) forbids is a `conflict`, and nothing is written.
 */
export interface RunStore {
  /** In a process that claims only its own requests: counts this run's request as one of them. */
  adoptRequest(run: Pick<Run, "root">): void;
  /** Durable when it resolves. Throws `budget_exceeded` with the figures. */
  accept(request: AcceptRequest): Promise<Accepted>;
  /** Like `accept`, inside a transaction of the session store (`StoreWork.create`). */
  acceptWithin(request: AcceptRequest): { readonly accepted: Accepted; readonly afterCommit: AfterCommit };
  /** Throws `budget_exceeded` if a run under this root would be refused now. Reserves nothing. */
  checkBudget(root: RootRef): Promise<void>;
  /** `null`: no waiter was ever registered. */
  replyWait(runId: string): Promise<ReplyWait | null>;
  /** The waiter stops waiting. `taken`: it already has the reply. `late`: the sequel gets the reply. */
  stopAwaiting(runId: string): Promise<"taken" | "late">;
  /**
   * The reply of `runId`, which the held run waited for, is written in its session. A reply that is not confirmed when the
   * waiter fails is delivered as if there had been no waiter.
   */
  confirmReply(held: HeldRun, runId: string): Promise<void>;
  /** By uid. A session that never had a run is `idle`. */
  work(uids: readonly string[]): Promise<ReadonlyMap<string, SessionWork>>;
  /** The sessions with an open run, or whose last run failed or timed out, by uid. `userId` undefined: of every user. */
  unsettledWork(userId?: string | null): Promise<ReadonlyMap<string, SessionWork>>;
  /** Newest first. `endedSince` excludes children that ended earlier. */
  children(
    userId: string | null,
    parentKey: string,
    query?: { readonly endedSince?: number; readonly open?: boolean },
  ): Promise<readonly Child[]>;
  /** Children to remove (`delete`: their result has reached the parent) or to archive (`archiveAfterMs` has passed). */
  childrenToTidy(): Promise<readonly { readonly child: Child; readonly act: "remove" | "archive" }[]>;
  markTidied(runId: string): Promise<void>;
  bindThread(userId: string | null, thread: ThreadRef, key: string): Promise<void>;
  /** The key of the session that a channel thread is bound to. */
  threadKey(userId: string | null, thread: ThreadRef): Promise<string | null>;
  /** `userId` undefined: any user's run, for the program itself. */
  get(runId: string, userId?: string | null): Promise<Run | null>;
  /** Newest first. */
  list(query: RunQuery, userId?: string | null): Promise<readonly Run[]>;
  /** All and open runs by user; `""` is the unnamed user. Users without runs are left out. */
  countByUser(
    userIds: readonly (string | null)[],
  ): Promise<ReadonlyMap<string, { readonly runs: number; readonly open: number }>>;
  waits(runId: string): Promise<RunWaits | null>;
  /** Like `waits`, for many runs at once; unknown ones are left out. */
  waitsOf(runIds: readonly string[]): Promise<ReadonlyMap<string, RunWaits>>;
  /** The inputs of a session that began or joined a turn which was open at or after a time, with the run of that turn. */
  turnInputs(
    sessionUid: string,
    since: number,
  ): Promise<readonly { readonly entryId: string; readonly runId: string }[]>;
  /** Every lane with its limit, its running runs, and the sessions whose next run only needs a free place. */
  lanes(userId?: string | null): Promise<readonly LaneCount[]>;
  /** Accepted input of a session that is not yet written into it, oldest first. */
  pending(sessionUid: string): Promise<readonly Run[]>;

  /**
   * Opens or extends a turn of an application's own agent loop: no run of the session is claimed until it ends. Returns
   * whether it is new. `conflict` if another process has one open. Called under the session's lock, at the moment of a write.
   */
  openLoopTurn(session: Pick<SessionRef, "uid" | "sessionId">, owner: string): boolean;
  /** Ends the owner's loop turn in a session; `uid` null: in all sessions. Returns whether one was open. */
  endLoopTurns(uid: string | null, owner: string): boolean;

  /**
   * Claims the next run by lanes and fairness. Recovered and woken runs of a session come before its others. Sessions whose
   * uid is in `except` are skipped.
   */
  claim(owner: string, except?: ReadonlySet<string>): Promise<Claim | null>;
  /** Called under the session's lock, at the moment of a write. */
  isHeld(held: HeldRun): boolean;
  /** Extends the leases. Returns the runs that this owner no longer holds. */
  renew(owner: string, held: readonly HeldRun[]): Promise<readonly string[]>;
  /**
   * Records that the run's input is in the session; for a woken run, the input that it woke for. A run that is lost
   * before this is `woken` again.
   */
  markWritten(held: HeldRun): Promise<void>;

  /** Input that can be steered into the running turn, oldest first. */
  steerable(held: HeldRun): Promise<readonly Run[]>;
  /**
   * Reserves such input for the turn before the turn writes it: from then on it cannot be edited, and aborting it aborts the
   * turn. Returns it as it is now; `null`: it was ended or taken in the meantime.
   */
  reserveInput(held: HeldRun, runId: string): Promise<Run | null>;
  /** The steered input is written: its run is merged into the held one and shares its outcome. */
  mergeInput(held: HeldRun, runId: string): Promise<void>;

  /** Frees the slot. With `runIds`: adds wait edges to them, unless that would deadlock. */
  wait(
    held: HeldRun,
    wait: { readonly for: "run" | "approval"; readonly runIds?: readonly string[] },
  ): Promise<WaitEntered>;
  /** `true` once it has a slot again; call it until then. Waiting runs get slots before new claims. */
  resume(held: HeldRun): Promise<boolean>;
  /** `queued`: everything has arrived already. `nothing_to_wait_for`: the run continues. */
  sleep(
    held: HeldRun,
    sleep: { readonly waitFor?: readonly string[]; readonly wakeAt: number },
  ): Promise<"sleeping" | "queued" | "nothing_to_wait_for">;

  /** Ends the run, together with the deliveries and outbox rows that belong to its end. */
  end(
    held: HeldRun,
    outcome: Outcome,
    also?: { readonly deliver?: readonly AcceptRequest[]; readonly outbox?: readonly OutboxRequest[] },
  ): Promise<void>;
  /**
   * Puts the run back into the queue without counting a loss. `released`: the owner shuts down or never started it.
   * `deferred`: the machine prevented it from starting; unless its input is written, its time limit restarts with the
   * next claim.
   */
  release(held: HeldRun, why?: "released" | "deferred"): Promise<void>;
  /** Counts as a lost lease; the fourth loss ends the run with an error. */
  lose(held: HeldRun): Promise<void>;
  /**
   * Ends a run without an owner at once; otherwise asks the owner to stop it. For merged input, aborts the turn that took it.
   * Returns the resulting state; `null`: unknown run.
   */
  abort(runId: string, reason?: string): Promise<RunState | null>;

  /**
   * Replaces the message of a queued run of a user. `conflict`: a process has read it, or no person wrote it. `null`: unknown
   * run.
   */
  edit(runId: string, message: MessageDraft): Promise<Run | null>;

  /**
   * Queues the input of a run that ended without success as a new run; for merged input, the input of the turn that took it.
   * Retrying the same run again returns the same retry. `conflict`: it is open or succeeded. `null`: unknown run.
   */
  retry(runId: string): Promise<Accepted | null>;

  /**
   * Lets any process that has the agent claim an open run that waits for an app. A run without an app is returned unchanged.
   * `conflict`: it is running in the app, or has ended. `null`: unknown run.
   */
  releaseApp(runId: string): Promise<Run | null>;

  /** The owner's runs that were asked to stop. */
  stopRequests(owner: string): Promise<readonly string[]>;

  /** Adds the cost of a step to the run and to every root that it charges. Throws `budget_exceeded` once one exceeds its limit. */
  charge(held: HeldRun, usage: RunUsage): Promise<void>;
  budget(rootId: string): Promise<BudgetFigures | null>;

  /** Saves the answer streamed so far, unsynced; `null` deletes it. */
  savePartial(held: HeldRun, text: string | null): Promise<void>;
  /** The answer that a lost owner had streamed. */
  partial(runId: string): Promise<string | null>;

  requestApproval(held: HeldRun, request: ApprovalRequest): Promise<Approval>;
  /** The first answer is final. An answer after the deadline counts as `expired`. `null`: unknown approval. */
  resolveApproval(
    approvalId: string,
    answer: "approved" | "denied" | "expired",
    by: string | null,
    note?: string | null,
  ): Promise<Approval | null>;
  approval(approvalId: string): Promise<Approval | null>;
  /** Oldest first. */
  approvals(query: ApprovalQuery, userId?: string | null): Promise<readonly Approval[]>;

  /** Handles lost leases, due sleepers and deadlines, and deletes what is older than 30 days. Returns when to sweep again. */
  sweep(): Promise<{ readonly nextAt: number | null }>;
  /** Whether another process has written since the last call, or a batch of announcements is due. */
  changedByOthers(): boolean;
}

export interface OutboxStore {
  put(request: OutboxRequest): Promise<OutboxRow>;
  get(outboxId: string, userId?: string | null): Promise<OutboxRow | null>;
  /** Newest first. */
  list(
    query: { readonly states?: readonly OutboxState[]; readonly limit?: number },
    userId?: string | null,
  ): Promise<readonly OutboxRow[]>;
  /** Leases due rows of channels that this process has to the owner for `leaseMs`. */
  due(owner: string, most: number, leaseMs: number): Promise<readonly OutboxRow[]>;
  delivered(outboxId: string, owner: string, receipt: unknown): Promise<void>;
  failed(
    outboxId: string,
    owner: string,
    error: string,
    next: { readonly at: number } | "dead",
  ): Promise<void>;
  /** Queues a dead or dropped row again, with all its attempts. `null`: unknown row. */
  retry(outboxId: string): Promise<OutboxRow | null>;
  drop(outboxId: string): Promise<OutboxRow | null>;
  /** When the next row is due; `null`: none is queued. */
  nextAt(): Promise<number | null>;
}

/**
 * Keeps the work of a session consistent with it. A store calls it inside its own transaction; an error rolls the change
 * back.
 */
export interface WorkAttendant {
  /**
   * Sleeping runs end; queued input moves to the new session. `conflict` while a run is running or waiting, unless its owner
   * resets the session itself (`isOwner`) and takes that run along.
   */
  reset(old: SessionRef, fresh: SessionRef, isOwner: boolean): AfterCommit;
  /** Runs end; unread input from other sessions goes to the parent, or becomes a dead letter. */
  remove(session: SessionRef, parent: SessionRef | null): AfterCommit;
  /** `conflict` while a run is running or waiting. `act` names the refused action if it is not a branch. */
  branch(session: SessionRef, act?: "reset"): void;
  /** Erases copies of redacted entries from runs and outbox. */
  redact(removed: RemovedEntries): void;
  /** Deletes everything of these sessions; with a user, everything of that user, whose sessions are all among these. */
  purge(uids: readonly string[], userId?: string): void;
  /** Removes unchanged attachments of these sessions, or of children spawned by redacted entries. Not in a transaction. */
  discardFiles(of: readonly string[] | RemovedEntries): Promise<void>;
  /** Whether a session has or had a run. */
  hasRuns(uid: string): boolean;
  /** Whether unread input refers to a blob. */
  isBlobInUse(sha256: string): boolean;
}

/** Entries that are redacted, in a session and its copies. */
export interface RemovedEntries {
  /** The uids of the sessions. */
  readonly uids: readonly string[];
  readonly entryIds: ReadonlySet<string>;
  /** Tool calls in those entries. */
  readonly toolCallIds: ReadonlySet<string>;
  readonly texts: RemovedTexts;
}

/** The database of the run ledger; the `Database` of the files store is one. */
export interface Ledger {
  /** Prepares each query text once. */
  sql(text: string): {
    all(...values: LedgerValue[]): Record<string, unknown>[];
    get(...values: LedgerValue[]): Record<string, unknown> | undefined;
  };
  run(text: string, ...values: LedgerValue[]): { readonly changes: number | bigint };
  /** A transaction that excludes all other processes. Nested calls join the outer one. */
  exclusively<T>(act: () => T): T;
  /** Commits without waiting for the disk: a power cut may lose the change, the death of the process does not. */
  unsynced(act: () => unknown): void;
  /** Changes when any connection writes; `null` within a transaction. */
  changeMark(): string | null;
}

export type LedgerValue = string | number | null;
