import type { Provenance, Usage } from "../core/messages.ts";
import type { MessageDraft } from "../core/seal.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { Awaiting, ChildRequest, ReplyWait } from "./awaiting.ts";
import type { DeliveryTarget, Sequel } from "./sequel.ts";
import type { TellLater } from "./work-attendant.ts";

export type { Awaiting, ChildRequest, ReplyWait } from "./awaiting.ts";
export type { Ledger, LedgerValue } from "./ledger.ts";
export type {
  ChildSequel,
  DeliveryTarget,
  ExchangeTerms,
  Party,
  PingPongSequel,
  ReplySequel,
  Sequel,
} from "./sequel.ts";
export type { RemovedEntries, TellLater, WorkAttendant } from "./work-attendant.ts";

/**
 * What is work and not yet conversation (W): accepted input, runs, waits, approvals, budgets, the outbox. Every method
 * is one transaction: all of it or nothing. A step that cannot happen (`states.ts`) is a `conflict`, and nothing is
 * written.
 */

/** Where a run stands: the first four are open, the others ended. */
export type RunState =
  | "queued"
  | "running"
  | "waiting"
  | "sleeping"
  | "ok"
  | "error"
  | "timeout"
  | "aborted"
  | "merged";

export type EndState = Extract<RunState, "ok" | "error" | "timeout" | "aborted">;

/** Where input comes from; the lane follows from it, never from a client. */
export type InputKind = "user" | "channel" | "cron" | "send" | "ping_pong" | "announce" | "spawn" | "note";

export type Lane = "main" | "subagent" | "cron" | "nested";

export type QueueMode = "steer" | "followup" | "interrupt";

/** What a run may be told beside its message. JSON. */
export interface RunOptions {
  readonly model?: string;
  readonly thinking?: string;
  /** 0: none. Left out: the agent's, else an hour. */
  readonly runTimeoutSeconds?: number;
  /** Instead of the agent's own system prompt. */
  readonly system?: string;
  /** Behind it. */
  readonly extraSystemPrompt?: string;
  /** A JSON Schema of an object: the answer has to be JSON that fits it. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  /** Tools of this run at the most, by name, group or glob. */
  readonly tools?: readonly string[];
  /** Where the reply goes when the run has ended well; left out: to nobody. */
  readonly deliverTo?: DeliveryTarget;
  /** Where the prompt was typed, which decides whether it may name image files. */
  readonly origin?: "cli" | "console" | "channel" | "webhook" | "inter_session" | "api";
  /** What its end sets off, whoever ends it. */
  readonly sequel?: Sequel;
  /** Of a spawned run: its progress is relayed to the session that spawned it. */
  readonly streamTo?: "parent";
  /** Of a tool call: its parameters, to recognize the same call under the same idempotency key. */
  readonly requestDigests?: RequestDigests;
}

/** Digests of a request's parameters, by name. Erased with the input that they describe. */
export type RequestDigests = Readonly<Record<string, string>>;

/** One request and all that it sets off share a root. */
export interface RootRef {
  readonly rootId: string;
  readonly hops: number;
}

export interface AcceptRequest {
  readonly session: SessionRef;
  readonly kind: InputKind;
  /** What is written into the session when its turn comes, under `entryId`. */
  readonly message: MessageDraft;
  /** Left out: a new one. */
  readonly runId?: string;
  readonly entryId?: string;
  /** The same one of the same user gives the same run, also after a restart. */
  readonly idempotencyKey?: string;
  readonly queueMode?: QueueMode;
  readonly options?: RunOptions;
  readonly provenance?: Provenance;
  /** Left out: outside input, which opens a root of its own. */
  readonly root?: RootRef;
  /** The two sessions (uids) of a message between them, where neither spawned the other: counted, and a loop past a limit. */
  readonly pair?: readonly [string, string];
  /** The run whose end this announces: kept for whoever sleeps for it. */
  readonly arrivalOf?: string;
  /** The run that started this one (a send or a spawn). */
  readonly startedBy?: string;
  /** Over the budget it is refused; a delivery (`true`) is written all the same, without a model turn. */
  readonly isDelivery?: boolean;
  /** Somebody waits for the reply, from this very transaction on. */
  readonly awaitedBy?: Awaiting;
  /** The session was spawned for this run: registered as a child, and counted, in the same transaction. */
  readonly child?: ChildRequest;
  /** The lost run whose input this run takes up again. */
  readonly retryOf?: string;
}

/** A child as it was registered, with its first run as it is now. */
export interface Child extends Omit<ChildRequest, "maxChildren"> {
  readonly run: Run;
  /** When it was archived or removed, and its attachments with it; `null`: it was not. */
  readonly tidiedAt: number | null;
}

export interface Accepted {
  readonly run: Run;
  /** `false`: it was known already, and nothing was changed. */
  readonly isNew: boolean;
}

/** How a run ended. */
export interface Outcome {
  readonly state: EndState;
  /** A stable code, where it did not end well. */
  readonly code?: string;
  readonly error?: string;
  /** The text of the last answer. */
  readonly reply?: string;
  /** The entry that it ended with. */
  readonly entryId?: string;
  /** The answer as `outputSchema` asked for it. */
  readonly output?: unknown;
}

/** What a run used. */
export interface RunUsage
  extends Pick<Usage, "input" | "output" | "cacheRead" | "cacheWrite" | "totalTokens"> {
  /** Absent: the price of something is not known. */
  readonly costUsd?: number;
}

/** A request to a session: from the moment that its input is accepted. */
export interface Run {
  readonly runId: string;
  readonly idempotencyKey: string | null;
  readonly session: SessionRef;
  /** Goes up with every accepted input; within a session, the order of turns. */
  readonly seq: number;
  readonly kind: InputKind;
  readonly lane: Lane;
  readonly queueMode: QueueMode;
  readonly message: MessageDraft;
  readonly entryId: string;
  readonly options: RunOptions;
  readonly provenance: Provenance | null;
  readonly root: RootRef;
  readonly state: RunState;
  readonly fence: number;
  readonly owner: string | null;
  readonly leaseUntil: number | null;
  /** How often its owner was lost. */
  readonly lost: number;
  readonly createdAt: number;
  /** The first claim. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** `null`: none, or not claimed yet. Does not run while asleep. */
  readonly deadline: number | null;
  readonly outcome: Outcome | null;
  readonly usage: RunUsage;
  readonly mergedInto: string | null;
  /** Waits in the inbox for a run that sleeps, or goes into the turn of one that was claimed, and starts none of its own. */
  readonly keptFor: string | null;
  readonly startedBy: string | null;
  /** The lost run whose input this run takes up again. */
  readonly retryOf: string | null;
  /** The run that took up the input of this lost run. */
  readonly retriedAs: string | null;
  /** The app that defines its agent in code: no other process claims it. `null`: any process that has the agent does. */
  readonly app: string | null;
  /** Tools of the agent that a process of the app must offer to claim it. */
  readonly requiredTools: readonly string[];
  /** Its input is written without a model turn: a note, or a delivery beyond the budget. */
  readonly isSilent: boolean;
  /** Somebody wants it ended. */
  readonly abortRequested: boolean;
}

/** A run that this process owns from now on. */
export interface Claim {
  readonly run: Run;
  /** Made here, once; every later step of the run takes this value. */
  readonly held: HeldRun;
  /** Where the session stood when the fence was raised, under the session's own lock. */
  readonly leafId: string | null;
  /** `new`: its first claim. `recovered`: its owner was lost. `woken`: it slept. */
  readonly how: "new" | "recovered" | "woken";
  /** The first claim of the turn that it goes on with: of a retry, that of the lost run. */
  readonly begunAt: number | null;
  /** It retries a lost run, and other runs have had their turn in the session since. */
  readonly isOvertaken: boolean;
  /**
   * What a woken run slept for: input that arrived, oldest first, the runs that are open, and those that ended without a
   * word to it. Of an announcement, the others that came with it.
   */
  readonly arrivals: readonly Run[];
  readonly stillOpen: readonly string[];
  readonly endedSilent: readonly string[];
}

/** Proves that a process owns a run: a later claim raises the fence, and every write under the old one is refused. */
export interface HeldRun {
  readonly runId: string;
  readonly fence: number;
}

/** Which runs. */
export interface RunQuery {
  readonly states?: readonly RunState[];
  readonly sessionUid?: string;
  readonly rootId?: string;
  /** Those that this run started. */
  readonly startedBy?: string;
  readonly limit?: number;
  /** A seq: older ones than this. */
  readonly before?: number;
  /** `true`: only lost runs whose input waits for a retry. */
  readonly lost?: boolean;
  /** `true`: only queued runs that this process cannot claim because they belong to an app. */
  readonly waitsForApp?: boolean;
}

/** Which approvals. */
export interface ApprovalQuery {
  readonly runId?: string;
  readonly sessionUid?: string;
  /** Left out: open ones and answered ones. */
  readonly open?: boolean;
  /** No more than so many, the newest. */
  readonly limit?: number;
}

/** What a run waits for: the runs before it or that it sleeps for, and when it wakes without them. */
export interface RunWaits {
  readonly runIds: readonly string[];
  /** Of a sleeping run. */
  readonly wakeAt: number | null;
  /** Of a queued run that this process cannot claim: the app whose process it waits for. */
  readonly app: string | null;
  /** Where this process is one of that app: the tools of the run that it does not offer. */
  readonly missingTools: readonly string[];
  /** The name of the store that the run waits for: it was not given to this process. */
  readonly store?: string;
  /** `true`: its state is running or waiting, but the process that had it is gone. The next process that has its agent continues it. */
  readonly isOwnerGone?: boolean;
}

/** What goes on in a session, as lists show it. */
export interface SessionWork {
  /** `waiting`: asleep too. `idle`: nothing is open, and the last run ended well, or there was none. */
  readonly status: "idle" | "queued" | "running" | "waiting" | "error" | "timeout" | "aborted";
  /** The first claim of its first run. */
  readonly startedAt: number | null;
  /** The end of its last run; `null` while one is open. */
  readonly endedAt: number | null;
  /** The run that is running, waiting, asleep or next; `null`: nothing is open. */
  readonly runId: string | null;
  /** Input that waits for a turn of its own. */
  readonly queued: number;
}

/** A wait that was entered, or would have closed a circle. */
export type WaitEntered =
  | { readonly entered: true }
  | { readonly entered: false; readonly cycle: readonly string[] };

/** An agent as this process has it. */
export interface AgentHere {
  /** `null`: defined by configuration, which any process may have. */
  readonly app: string | null;
  /** The agent's own tools that a run would be offered. */
  readonly tools: readonly string[];
}

export interface RunStore {
  /** Where this process claims only its own requests: it counts this one among them. */
  adoptRequest(run: Pick<Run, "root">): void;
  /** Durable when it resolves. `budget_exceeded` with the figures. */
  accept(request: AcceptRequest): Promise<Accepted>;
  /** The same inside a transaction of the store's own (`StoreWork.create`), whose owner tells of it when it is committed. */
  acceptWithin(request: AcceptRequest): { readonly accepted: Accepted; readonly tell: TellLater };
  /** Throws `budget_exceeded` where a run under this root would be refused now. Reserves nothing. */
  checkBudget(root: RootRef): Promise<void>;
  /** `null`: nobody ever waited for it. */
  replyWait(runId: string): Promise<ReplyWait | null>;
  /** The waiter goes. `taken`: the reply was theirs before. `late`: it goes as the sequel says. */
  stopAwaiting(runId: string): Promise<"taken" | "late">;
  /**
   * The reply of another run, which this one waited for, stands in its session. A reply that is not confirmed when its
   * waiter fails is delivered as if nobody had waited.
   */
  confirmReply(held: HeldRun, runId: string): Promise<void>;
  /** By uid; a session that never had a run is `idle`. */
  work(uids: readonly string[]): Promise<ReadonlyMap<string, SessionWork>>;
  /** Of one parent, newest first. `endedSince`: those that ended earlier are left out. */
  children(
    userId: string | null,
    parentKey: string,
    query?: { readonly endedSince?: number; readonly open?: boolean },
  ): Promise<readonly Child[]>;
  /**
   * Children that are due: to be removed (`delete`: their announcement stands in the parent's session, or was a waiter's)
   * or archived (their time after the end is over).
   */
  toTidy(): Promise<readonly { readonly child: Child; readonly act: "remove" | "archive" }[]>;
  tidied(runId: string): Promise<void>;
  /** A thread of a channel belongs to a session from now on. */
  bindThread(userId: string | null, thread: ThreadRef, key: string): Promise<void>;
  /** The key of the session that a thread belongs to; `null`: to none. */
  boundTo(userId: string | null, thread: ThreadRef): Promise<string | null>;
  /** `userId` undefined: of anybody, for the program itself. */
  get(runId: string, userId?: string | null): Promise<Run | null>;
  /** Newest first. */
  list(query: RunQuery, userId?: string | null): Promise<readonly Run[]>;
  /** How many runs each user has, and how many of them have not ended; `""` is the unnamed user. Users without any are left out. */
  countByUser(
    userIds: readonly (string | null)[],
  ): Promise<ReadonlyMap<string, { readonly runs: number; readonly open: number }>>;
  /** Why a run does not go on; `null`: unknown. */
  waits(runId: string): Promise<RunWaits | null>;
  /** The same of many at once; those that are unknown are left out. */
  waitsOf(runIds: readonly string[]): Promise<ReadonlyMap<string, RunWaits>>;
  /** Accepted input of a session that is not yet in the conversation, oldest first. */
  pending(sessionUid: string): Promise<readonly Run[]>;

  /**
   * Opens or extends the turn of an agent loop of the user's own: no run of the session is claimed until it ends. Returns
   * whether it is new; `conflict` where another process has one open. Under the session's lock, at the moment of a write.
   */
  openLoopTurn(session: Pick<SessionRef, "uid" | "sessionId">, owner: string): boolean;
  /** Ends the owner's turn in a session; `uid` null: in all of them. Returns whether one was open. */
  endLoopTurns(uid: string | null, owner: string): boolean;

  /**
   * The next run that may go, by lanes and fairness: recovered and woken ones of a session before its others. Sessions in
   * `except`, named by uid, are skipped.
   */
  claim(owner: string, except?: ReadonlySet<string>): Promise<Claim | null>;
  /** Asked under the session's lock at the moment of a write. */
  isHeld(held: HeldRun): boolean;
  /** Goes on owning; gives those that are not ours any more. */
  renew(owner: string, held: readonly HeldRun[]): Promise<readonly string[]>;
  /** Its input stands in the session; of a woken run, what it woke for. Until then a lost one is `woken` again. */
  written(held: HeldRun): Promise<void>;

  /** Input that waits to be steered into a running turn, oldest first. */
  steerable(held: HeldRun): Promise<readonly Run[]>;
  /** Its entry is written: merged into the running one, whose outcome it shares. */
  steered(held: HeldRun, runId: string): Promise<void>;

  /** Frees the slot. With runs: edges to them, unless that closes a circle. */
  wait(
    held: HeldRun,
    wait: { readonly for: "run" | "approval"; readonly runIds?: readonly string[] },
  ): Promise<WaitEntered>;
  /** `true` once it has a slot again; asked anew until then. Before new claims. */
  waitOver(held: HeldRun): Promise<boolean>;
  /** `queued`: everything is there already. `nothing_to_wait_for`: it goes on running. */
  sleep(
    held: HeldRun,
    sleep: { readonly waitFor?: readonly string[]; readonly wakeAt: number },
  ): Promise<"sleeping" | "queued" | "nothing_to_wait_for">;

  /** Ends it, with everything that goes with its end: input for others, and rows of the outbox. */
  end(
    held: HeldRun,
    outcome: Outcome,
    also?: { readonly deliver?: readonly AcceptRequest[]; readonly outbox?: readonly OutboxRequest[] },
  ): Promise<void>;
  /**
   * Back into the queue, not counted as lost: its owner stops in good order, or never began. `deferred`: the machine did not let
   * it begin, and its time starts again with the next claim unless its input is written.
   */
  release(held: HeldRun, why?: "released" | "deferred"): Promise<void>;
  /** As the loss of a lease: counted, and the fourth time an error. */
  lose(held: HeldRun): Promise<void>;
  /**
   * Ends what nobody owns at once, and asks the owner of the rest to; of merged input, the turn that took it. Gives the state
   * that it has then; `null`: unknown.
   */
  abort(runId: string, reason?: string): Promise<RunState | null>;

  /**
   * Queues the input of a run that was lost or stopped by a disk fault again, as a new run with a fresh count of attempts; of merged input, that of the turn that took it.
   * The same run again gives the same retry. `conflict`: it was not lost. `null`: unknown.
   */
  retry(runId: string): Promise<Accepted | null>;

  /**
   * Lets any process that has the agent claim an open run that waits for an app. A run that belongs to no app is returned as it
   * is. `conflict`: a process of the app runs it now, or it has ended. `null`: unknown.
   */
  releaseApp(runId: string): Promise<Run | null>;

  /** The runs of an owner that somebody has asked to stop. */
  toStop(owner: string): Promise<readonly string[]>;

  /** Adds what a step cost to the run and to every root that it charges; `budget_exceeded` once one is over. */
  charge(held: HeldRun, usage: RunUsage): Promise<void>;
  /** What a root has come to. */
  budget(rootId: string): Promise<BudgetFigures | null>;

  /** The answer so far, not synced. `null` takes it away. */
  keepPartial(held: HeldRun, text: string | null): Promise<void>;
  /** What a lost owner had streamed. */
  partial(runId: string): Promise<string | null>;

  requestApproval(held: HeldRun, request: ApprovalRequest): Promise<Approval>;
  /** The first answer stands. `null`: there is none of this id. */
  resolveApproval(
    approvalId: string,
    answer: "approved" | "denied" | "expired",
    by: string | null,
  ): Promise<Approval | null>;
  approval(approvalId: string): Promise<Approval | null>;
  /** Oldest first. */
  approvals(query: ApprovalQuery, userId?: string | null): Promise<readonly Approval[]>;

  /** Lost leases, sleepers whose time has come, deadlines, and what is older than 30 days. Gives when to look again. */
  sweep(): Promise<{ readonly nextAt: number | null }>;
  /** Whether another process has changed something since the last time this was asked, or what was held back is due. */
  changedByOthers(): boolean;
}

export interface ThreadRef {
  readonly channel: string;
  readonly accountId?: string;
  readonly threadId: string;
}

export interface BudgetLimits {
  readonly hops: number;
  readonly runs: number;
  readonly tokens: number | null;
  readonly costUsd: number | null;
  /** Messages of a pair of sessions under one root. */
  readonly pingPong: number;
}

/** What one request and all that it set off has come to. */
export interface BudgetFigures {
  readonly rootId: string;
  readonly runs: number;
  readonly tokens: number;
  /** `null`: the price of something is not known. */
  readonly costUsd: number | null;
  readonly hops: number;
}

export interface ApprovalRequest {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly expiresAt: number;
}

/** A tool call that needs approval, answered or not. */
export interface Approval extends ApprovalRequest {
  readonly approvalId: string;
  readonly runId: string;
  readonly session: SessionRef;
  readonly requestedAt: number;
  readonly answer: "approved" | "denied" | "expired" | null;
  readonly resolvedAt: number | null;
  readonly by: string | null;
}

/** A message on its way to a channel. */
export interface OutboxRequest {
  readonly session: SessionRef;
  readonly runId: string | null;
  readonly target: DeliveryTarget;
  readonly text: string;
  /** The same one again changes nothing; also what the channel is told, so that it can drop a repetition. */
  readonly idempotencyKey: string;
}

export type OutboxState = "queued" | "delivered" | "dead" | "dropped";

/** A message to a channel, and how far it has come. */
export interface OutboxRow extends OutboxRequest {
  readonly outboxId: string;
  readonly state: OutboxState;
  readonly attempts: number;
  readonly createdAt: number;
  readonly nextAt: number;
  readonly endedAt: number | null;
  readonly lastError: string | null;
  /** What the channel answered. */
  readonly receipt: unknown;
  /** The app whose code brings the channel; `null`: any process that has the channel delivers it. */
  readonly app: string | null;
  /** It is queued, and this process does not have its channel. */
  readonly waitsForChannel: boolean;
}

export interface OutboxStore {
  put(request: OutboxRequest): Promise<OutboxRow>;
  get(outboxId: string, userId?: string | null): Promise<OutboxRow | null>;
  /** Newest first. */
  list(
    query: { readonly states?: readonly OutboxState[]; readonly limit?: number },
    userId?: string | null,
  ): Promise<readonly OutboxRow[]>;
  /** Rows of channels that this process has and that are due, each for this owner alone until `leaseMs` have passed. */
  due(owner: string, most: number, leaseMs: number): Promise<readonly OutboxRow[]>;
  delivered(outboxId: string, owner: string, receipt: unknown): Promise<void>;
  failed(
    outboxId: string,
    owner: string,
    error: string,
    next: { readonly at: number } | "dead",
  ): Promise<void>;
  /** A dead or dropped one again, from the beginning. `null`: unknown. */
  retry(outboxId: string): Promise<OutboxRow | null>;
  drop(outboxId: string): Promise<OutboxRow | null>;
  /** When the next row is due; `null`: none waits. */
  nextAt(): Promise<number | null>;
}
