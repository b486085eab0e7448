import type { Script, SqlDatabase } from "../core/script.ts";
import type { MessageDraft } from "../core/seal.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { RemovedTexts } from "../core/tombstone.ts";
import type {
  Accepted,
  AcceptRequest,
  Approval,
  ApprovalIdentity,
  ApprovalQuery,
  ApprovalRequest,
  BudgetFigures,
  Child,
  Claim,
  HeldRun,
  LaneCount,
  OpenWork,
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

/** An agent as defined in this process. */
export interface AgentHere {
  /** `null` if the agent is defined in the configuration, which any process can load. */
  readonly app: string | null;
  /** The names of the agent's own tools that a run would be offered. */
  readonly tools: readonly string[];
}

/** Emits the transaction's events. Called after the commit. */
export type AfterCommit = () => void;

/**
 * Work that is not yet part of a conversation: accepted input, runs, waits, approvals, budgets. Every method runs in
 * one transaction. A transition that the state table (`states.ts`) forbids throws `conflict` and writes nothing.
 */
export interface RunStore {
  /** In a process that claims only its own requests, adds this run's request to them. */
  adoptRequest(run: Pick<Run, "root">): void;
  /**
   * Accepts input, which is durable once the promise resolves. Throws `budget_exceeded` with the current usage and
   * limits.
   */
  accept(request: AcceptRequest): Promise<Accepted>;
  /** Like `accept`, but part of a transaction of the session store (`StoreWork.create`). */
  acceptWithin(
    request: AcceptRequest,
  ): Script<{ readonly accepted: Accepted; readonly afterCommit: AfterCommit }>;
  /** Throws `budget_exceeded` if a run under this root would be rejected now. Reserves nothing. */
  checkBudget(root: RootRef): Promise<void>;
  /** Returns `null` if no waiter has ever been registered. */
  replyWait(runId: string): Promise<ReplyWait | null>;
  /**
   * Ends the wait. `taken` means that the waiter already has the reply. `late` means that the sequel delivers the
   * reply.
   */
  stopAwaiting(runId: string): Promise<"taken" | "late">;
  /**
   * Confirms that the held run has written the reply from `runId` to its session. If the waiter fails before confirming
   * a reply, the reply is delivered as if there had been no waiter.
   */
  confirmReply(held: HeldRun, runId: string): Promise<void>;
  /** Returns each session's work, keyed by uid. A session that has never had a run is `idle`. */
  work(uids: readonly string[]): Promise<ReadonlyMap<string, SessionWork>>;
  /**
   * Returns the work of sessions that have an open run or whose last run failed or timed out, keyed by uid. If `userId`
   * is undefined, covers all users.
   */
  unsettledWork(userId?: string | null): Promise<ReadonlyMap<string, SessionWork>>;
  /** Lists children, newest first. `endedSince` excludes children that ended earlier. */
  children(
    userId: string | null,
    parentKey: string,
    query?: { readonly endedSince?: number; readonly open?: boolean },
  ): Promise<readonly Child[]>;
  /**
   * Returns children to remove (`delete`, once the parent has received their result) or to archive (once
   * `archiveAfterMs` has passed).
   */
  childrenToTidy(): Promise<readonly { readonly child: Child; readonly act: "remove" | "archive" }[]>;
  markTidied(runId: string): Promise<void>;
  bindThread(userId: string | null, thread: ThreadRef, key: string): Promise<void>;
  /** Returns the key of the session that a channel thread is bound to. */
  threadKey(userId: string | null, thread: ThreadRef): Promise<string | null>;
  /** If `userId` is undefined, finds any user's run. For internal use. */
  get(runId: string, userId?: string | null): Promise<Run | null>;
  /** Lists runs, newest first. */
  list(query: RunQuery, userId?: string | null): Promise<readonly Run[]>;
  /**
   * Counts all runs and open runs by user. The key `""` stands for the unnamed user. Users without runs are omitted.
   */
  countByUser(
    userIds: readonly (string | null)[],
  ): Promise<ReadonlyMap<string, { readonly runs: number; readonly open: number }>>;
  waits(runId: string): Promise<RunWaits | null>;
  /** Like `waits`, but for many runs in one call. Unknown runs are omitted. */
  waitsOf(runIds: readonly string[]): Promise<ReadonlyMap<string, RunWaits>>;
  /**
   * Returns the inputs that started or joined a turn in this session, together with the turn's run. Covers turns that
   * were open at or after `since`.
   */
  turnInputs(
    sessionUid: string,
    since: number,
  ): Promise<readonly { readonly entryId: string; readonly runId: string }[]>;
  /**
   * Returns every lane with its limit, its running runs, and the sessions whose next run is waiting only for a free
   * slot.
   */
  lanes(userId?: string | null): Promise<readonly LaneCount[]>;
  /** Returns the number of runs that each owner executes. */
  countByOwner(): Promise<ReadonlyMap<string, number>>;
  /** Counts the unfinished work of every user, in all processes. */
  countOpen(): Promise<OpenWork>;
  /** Returns the input accepted for a session but not yet written to its log, oldest first. */
  pending(sessionUid: string): Promise<readonly Run[]>;

  /**
   * Opens or extends a turn in an application's own agent loop. No run in the session is claimed until the turn ends.
   * Returns `true` if the turn is new. Throws `conflict` if another process has a turn open. Runs under the session's
   * lock, when an entry is written.
   */
  openLoopTurn(session: Pick<SessionRef, "uid" | "sessionId">, owner: string): Script<boolean>;
  /**
   * Like `openLoopTurn`, but in a separate transaction. Also throws `conflict` while a run is active in the session.
   */
  startLoopTurn(session: SessionRef, owner: string): Promise<boolean>;
  /**
   * Ends the owner's loop turn in a session, or in all sessions if `uid` is null. Returns `true` if a turn was open.
   */
  endLoopTurns(uid: string | null, owner: string): Promise<boolean>;

  /**
   * Claims the next run according to lanes and fairness. Within a session, recovered and woken runs come first. Skips
   * sessions whose uid is in `except`. Calls `onLocked` with the uid of each session whose lock file another process did
   * not release in time.
   */
  claim(owner: string, except?: ReadonlySet<string>, onLocked?: (uid: string) => void): Promise<Claim | null>;
  /** Whether the run still holds its session. A store checks this again when it writes an entry for the run. */
  isHeld(held: HeldRun): Promise<boolean>;
  /** Extends the leases. Returns the runs that this owner has lost. */
  renew(owner: string, held: readonly HeldRun[]): Promise<readonly string[]>;
  /**
   * Records that the run's input is in the session. For a woken run, this is the input that woke it. A run that is lost
   * before this call becomes `woken` again.
   */
  markWritten(held: HeldRun): Promise<void>;

  /** Returns input that can be steered into the running turn, oldest first. */
  steerable(held: HeldRun): Promise<readonly Run[]>;
  /**
   * Reserves steerable input before the turn writes it. From then on, it cannot be edited, and aborting it aborts the
   * turn. Returns the current input, or `null` if it has since ended or been taken by a turn.
   */
  reserveInput(held: HeldRun, runId: string): Promise<Run | null>;
  /** Records that the steered input has been written. Its run is merged into the held run and shares its outcome. */
  mergeInput(held: HeldRun, runId: string): Promise<void>;

  /** Frees the slot. With `runIds`, adds wait edges to those runs, unless that would cause a deadlock. */
  wait(
    held: HeldRun,
    wait: { readonly for: "run" | "approval"; readonly runIds?: readonly string[] },
  ): Promise<WaitEntered>;
  /**
   * Returns `true` once the run has a slot again. Keep calling until it does. Waiting runs get slots before new claims.
   */
  resume(held: HeldRun): Promise<boolean>;
  /**
   * Puts the run to sleep. `queued` means that everything has already arrived. `nothing_to_wait_for` means that the run
   * continues. `aborted` means that an abort had been requested, and that the run has ended.
   */
  sleep(
    held: HeldRun,
    sleep: { readonly waitFor?: readonly string[]; readonly wakeAt: number },
  ): Promise<"sleeping" | "queued" | "nothing_to_wait_for" | "aborted">;

  /**
   * Ends the run and writes its deliveries and outbox rows in the same transaction. If an abort was requested before
   * the run succeeded, it ends as `aborted` and writes neither. Returns the outcome with which the run has ended.
   */
  end(
    held: HeldRun,
    outcome: Outcome,
    also?: { readonly deliver?: readonly AcceptRequest[]; readonly outbox?: readonly OutboxRequest[] },
  ): Promise<Outcome>;
  /**
   * Returns the run to the queue without counting a loss. `released` means that the owner is shutting down or never
   * started it. `deferred` means that a disk or database error stopped the run. Its time limit then restarts with the
   * next claim unless its input has been written.
   */
  release(held: HeldRun, why?: "released" | "deferred"): Promise<void>;
  /** Returns the run to the queue because its lease was lost. The fourth loss ends the run with an error. */
  lose(held: HeldRun): Promise<void>;
  /**
   * If the run has no owner, ends it immediately. Otherwise, asks the owner to stop it. For merged input, aborts the
   * turn that the input joined. Returns the resulting state, or `null` if the run does not exist.
   */
  abort(runId: string, reason?: string): Promise<RunState | null>;

  /**
   * Replaces the message of a queued user run. Throws `conflict` if a process has already read the message, if no
   * person wrote it, or if it is not the expected one. Returns `null` if the run does not exist.
   */
  edit(runId: string, message: MessageDraft, expected?: MessageDraft): Promise<Run | null>;

  /**
   * Queues the input of an unsuccessful run as a new run. For merged input, queues the input of the turn that it
   * joined. Retrying the same run twice returns the same new run. Throws `conflict` if the run is open or succeeded.
   * Returns `null` if the run does not exist.
   */
  retry(runId: string): Promise<Accepted | null>;

  /**
   * Lets any process that has the agent claim an open run that is waiting for an app. A run without an app is returned
   * unchanged. Throws `conflict` if the run is running in the app or has ended. Returns `null` if the run does not
   * exist.
   */
  releaseApp(runId: string): Promise<Run | null>;

  /** Returns which of these runs the owner has lost or has been asked to stop. */
  stopRequests(
    owner: string,
    held: readonly HeldRun[],
  ): Promise<{ readonly lost: readonly string[]; readonly aborted: readonly string[] }>;

  /**
   * Adds a step's cost to the run and to every root it is charged to. Throws `budget_exceeded` once a root exceeds its
   * limit.
   */
  charge(held: HeldRun, usage: RunUsage): Promise<void>;
  budget(rootId: string): Promise<BudgetFigures | null>;

  /** Saves the answer streamed so far, without a sync. `null` deletes it. */
  savePartial(held: HeldRun, text: string | null): Promise<void>;
  /** Returns the answer that a lost owner had streamed. */
  partial(runId: string): Promise<string | null>;

  requestApproval(held: HeldRun, request: ApprovalRequest & ApprovalIdentity): Promise<Approval>;
  /**
   * Records an answer. The first answer is final. An answer after the deadline is recorded as `expired`. Returns `null`
   * if there is no such approval.
   */
  resolveApproval(
    approvalId: string,
    answer: "approved" | "denied" | "expired",
    by: string | null,
    note?: string | null,
  ): Promise<Approval | null>;
  approval(approvalId: string): Promise<Approval | null>;
  /** Lists approvals, oldest first. */
  approvals(query: ApprovalQuery, userId?: string | null): Promise<readonly Approval[]>;

  /**
   * Handles lost leases, due sleepers and deadlines, and deletes data older than 30 days. Returns the time of the next
   * sweep.
   */
  sweep(): Promise<{ readonly nextAt: number | null }>;
  /** Whether another process has written since the last call or a batch of announcements is due. */
  changedByOthers(): Promise<boolean>;
}

export interface OutboxStore {
  put(request: OutboxRequest): Promise<OutboxRow>;
  get(outboxId: string, userId?: string | null): Promise<OutboxRow | null>;
  /** Lists rows, newest first. */
  list(
    query: { readonly states?: readonly OutboxState[]; readonly limit?: number },
    userId?: string | null,
  ): Promise<readonly OutboxRow[]>;
  /** Leases due rows to the owner for `leaseMs`, limited to channels that this process has. */
  due(owner: string, most: number, leaseMs: number): Promise<readonly OutboxRow[]>;
  /** Ends the owner's leases. */
  release(outboxIds: readonly string[], owner: string): Promise<void>;
  delivered(outboxId: string, owner: string, receipt: unknown): Promise<void>;
  /**
   * Queues the row for the next attempt, or ends it as dead and accepts a note that informs the session that sent it.
   * Only `retry` requeues a dead row. Returns the changed row, or `null` if the owner's lease has passed to another
   * process, or the row has ended.
   */
  failed(
    outboxId: string,
    owner: string,
    error: string,
    next: { readonly at: number } | "dead",
  ): Promise<OutboxRow | null>;
  /** Requeues a dead or dropped row and resets its attempts. Returns `null` if there is no such row. */
  retry(outboxId: string): Promise<OutboxRow | null>;
  drop(outboxId: string): Promise<OutboxRow | null>;
  /** Returns when the next row is due, or `null` if none is queued. */
  nextAt(): Promise<number | null>;
}

/**
 * Keeps runs consistent with their session. A store runs these scripts in the transaction that changes the session, so
 * that an error rolls back both changes.
 */
export interface WorkAttendant {
  /**
   * Ends sleeping runs and moves queued input to the new session. Throws `conflict` while a run is running or waiting,
   * unless the run's owner is resetting the session (`isOwner`). That run then moves to the new session.
   */
  reset(old: SessionRef, fresh: SessionRef, isOwner: boolean): Script<AfterCommit>;
  /** Ends the session's runs. Unread input from other sessions goes to the parent or becomes a dead letter. */
  remove(session: SessionRef, parent: SessionRef | null): Script<AfterCommit>;
  /**
   * Throws `conflict` while a run is running or waiting. The error names `act` as the rejected action. The default is a
   * move to another branch.
   */
  branch(session: SessionRef, act?: "reset"): Script<void>;
  /** Erases copies of redacted entries from runs and the outbox. */
  redact(removed: RemovedEntries): Script<void>;
  /**
   * Deletes all data of these sessions. If a user is given, deletes all of that user's data, and the list must include
   * all of the user's sessions.
   */
  purge(uids: readonly string[], userId?: string): Script<void>;
  /**
   * Removes unchanged attachments from these sessions, or from children spawned by redacted entries. Not transactional.
   */
  discardFiles(of: readonly string[] | RemovedEntries): Promise<void>;
  /** Whether a session has ever had a run. */
  hasRuns(uid: string): Script<boolean>;
  /** Whether unread input refers to a blob. */
  isBlobInUse(sha256: string): Script<boolean>;
}

/** Redacted entries in a session and its copies. */
export interface RemovedEntries {
  readonly uids: readonly string[];
  readonly entryIds: ReadonlySet<string>;
  /** The tool calls in the redacted entries. */
  readonly toolCallIds: ReadonlySet<string>;
  readonly texts: RemovedTexts;
}

/** The database of the run ledger, tokens and event numbers. The files store's `Database` implements it. */
export interface Ledger extends SqlDatabase {
  /** A value that changes when any connection writes. `null` within a transaction. */
  changeMark(): string | null;
}
