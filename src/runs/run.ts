import type { Provenance, Usage } from "../core/messages.ts";
import type { MessageDraft } from "../core/seal.ts";
import type { SessionRef } from "../core/session-ref.ts";

/** The first four states are open, and the others are final. */
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

/** Where input comes from. The source determines the lane, and clients cannot choose it. */
export type InputKind = "user" | "channel" | "cron" | "send" | "ping_pong" | "announce" | "spawn" | "note";

export type Lane = "main" | "subagent" | "cron" | "nested";

export type QueueMode = "steer" | "followup" | "interrupt";

/** The destination of a message on a channel. */
export interface DeliveryTarget {
  readonly channel: string;
  readonly to?: string;
  readonly accountId?: string;
  readonly threadId?: string;
}

/** Settings for one run. Stored as JSON. */
export interface RunOptions {
  readonly model?: string;
  readonly thinking?: string;
  /** 0 means no limit. If absent, the agent's limit applies, otherwise one hour. */
  readonly runTimeoutSeconds?: number;
  /** Replaces the agent's system prompt. */
  readonly system?: string;
  /** Appended to the system prompt. */
  readonly extraSystemPrompt?: string;
  /** JSON Schema for the object that the answer must match. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  /** The only tools that the run can use, by name, group or glob. */
  readonly tools?: readonly string[];
  /** Where the reply is delivered if the run succeeds. If absent, it is not delivered. */
  readonly deliverTo?: DeliveryTarget;
  /** Where the prompt was entered. Determines whether the prompt can refer to image files. */
  readonly origin?: "cli" | "console" | "channel" | "webhook" | "inter_session" | "api";
  /** Starts when the run ends, in whichever process ends it. */
  readonly sequel?: Sequel;
  /** Relays the progress of a spawned run to the session that spawned it. */
  readonly streamTo?: "parent";
  /** For a run started by a tool call, the ID of the entry in the calling session that contains the call. */
  readonly callEntryId?: string;
  /** When the message was replaced. A repeat of the original request still matches this run. */
  readonly editedAt?: number;
  /**
   * For a run started by a tool call, digests of the call's parameters. A retry of the call must have the same digests.
   */
  readonly requestDigests?: RequestDigests;
}

/** Digests of a request's parameters, keyed by parameter name. Erased together with the input that they describe. */
export type RequestDigests = Readonly<Record<string, string>>;

/** A reference to the root shared by a request and everything it causes. */
export interface RootRef {
  readonly rootId: string;
  readonly hops: number;
}

export interface AcceptRequest {
  readonly session: SessionRef;
  readonly kind: InputKind;
  /** Written to the session under `entryId` when the turn starts. */
  readonly message: MessageDraft;
  readonly runId?: string;
  readonly entryId?: string;
  /** A request with the same key from the same user returns the same run, even after a restart. */
  readonly idempotencyKey?: string;
  readonly queueMode?: QueueMode;
  readonly options?: RunOptions;
  readonly provenance?: Provenance;
  /** Absent for external input, which starts its own root. */
  readonly root?: RootRef;
  /**
   * The uids of two sessions that exchange messages, neither of which spawned the other. The message counts toward
   * their ping-pong limit.
   */
  readonly pair?: readonly [string, string];
  /** The run whose end this input announces. The input is kept for a run that is sleeping until then. */
  readonly arrivalOf?: string;
  /** The run that started this one with a send or a spawn. */
  readonly startedBy?: string;
  /** If the budget is exceeded, a delivery is written without a model turn. Any other input is rejected. */
  readonly isDelivery?: boolean;
  /** Registers a waiter for the reply in the same transaction. */
  readonly awaitedBy?: Awaiting;
  /** Registers the session as a spawned child and counts it, in the same transaction. */
  readonly child?: ChildRequest;
  /** The unsuccessful run whose input this run processes again. */
  readonly retryOf?: string;
  /** Whether the session might have been reset since it was looked up. */
  readonly isDelayed?: boolean;
}

export interface Accepted {
  readonly run: Run;
  /** `false` if the run already existed and nothing changed. */
  readonly isNew: boolean;
}

/**
 * A waiter for a run's reply. While it is waiting, the reply is reserved for it and the run's sequel does not start.
 * The sequel starts instead if the waiter's run ends, its process dies or its wait times out first.
 */
export interface Awaiting {
  readonly by: { readonly runId: string } | { readonly owner: string };
  readonly until: number;
}

/**
 * `taken` means that the run has ended and the waiter has the reply. `late` means that the sequel delivers the reply.
 */
export interface ReplyWait {
  readonly state: "open" | "taken" | "late";
  readonly until: number;
}

/** A spawned session, registered with its first run. */
export interface ChildRequest {
  readonly parentKey: string;
  readonly spawnId: string;
  readonly label?: string;
  readonly task: string;
  readonly mode: "run" | "session";
  readonly cleanup: "keep" | "delete";
  /** The maximum number of open first runs among the parent's children. Exceeding it throws `children_exceeded`. */
  readonly maxChildren: number;
  /** The child's attachment folder, removed with the child. Absent if there are no attachments or they are kept. */
  readonly attachments?: string;
  /** Time from the child's end until it is archived. If absent, it is never archived. */
  readonly archiveAfterMs?: number;
}

export interface Child extends Omit<ChildRequest, "maxChildren"> {
  /** The child's first run. */
  readonly run: Run;
  /** When the child was archived or removed, or `null` if neither has happened. */
  readonly tidiedAt: number | null;
}

/** One side of an exchange between two sessions. Stored as JSON. */
export interface Party extends Pick<SessionRef, "key" | "sessionId"> {
  /** Absent if the session has no channel. */
  readonly channel?: string;
}

/**
 * Work that starts when a run ends. It can be planned in any process, in the transaction that ends the run, so it
 * contains all the data it needs. Stored as JSON. Does not start if a waiter takes the reply ({@link Awaiting}).
 */
export type Sequel = ReplySequel | PingPongSequel | ChildSequel;

export interface ExchangeTerms {
  readonly asker: Party;
  readonly target: Party;
  /** Up to 4,000 characters of the requester's message. */
  readonly request: string;
  /** The maximum number of ping-pong turns. If it is 0, the requester only receives the reply. */
  readonly turns: number;
  /** The external channel on which the target announces the result. Absent if it has none. */
  readonly announceTo?: DeliveryTarget;
  /** Where the requester announces the result. If absent, the announcement stays in the requester's session. */
  readonly deliverTo?: DeliveryTarget;
}

/** Returns the reply to the session that sent the message. */
export interface ReplySequel extends ExchangeTerms {
  readonly type: "reply";
}

/** One turn of the exchange that follows a reply. After the last turn, both sides can announce the result. */
export interface PingPongSequel extends ExchangeTerms {
  readonly type: "ping_pong";
  /** Starts at 1. Odd turns belong to the requester. */
  readonly turn: number;
  readonly firstReply: string;
  readonly latestReply: string;
}

/** Announces the end of a spawned session's first run to its parent. */
export interface ChildSequel {
  readonly type: "child";
  readonly parent: Party;
  readonly childKey: string;
  readonly label?: string;
  readonly task: string;
  /** The model requested by the spawn. Compared when the call is retried. */
  readonly model?: string;
  /** Where the parent's answer to the announcement is delivered. */
  readonly deliverTo?: DeliveryTarget;
}

/** How a run ended. */
export interface Outcome {
  readonly state: EndState;
  /** A stable error code. Absent if the run succeeded. */
  readonly code?: string;
  readonly error?: string;
  /** The text of the last answer. */
  readonly reply?: string;
  /** The last entry that the run wrote. */
  readonly entryId?: string;
  /** The parsed answer, which matches `outputSchema`. */
  readonly output?: unknown;
}

/** A run's token usage and cost. */
export interface RunUsage
  extends Pick<Usage, "input" | "output" | "cacheRead" | "cacheWrite" | "totalTokens"> {
  /** Absent if any price is unknown. */
  readonly costUsd?: number;
}

/** A request to a session, from the moment its input is accepted. */
export interface Run {
  readonly runId: string;
  readonly idempotencyKey: string | null;
  readonly session: SessionRef;
  /** Increases with every accepted input. Determines the order of turns in a session. */
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
  /** The number of times the run has lost its owner. */
  readonly lost: number;
  readonly createdAt: number;
  /** The time of the first claim. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /**
   * `null` if there is no limit or the run has not been claimed yet. The time limit is paused while the run is asleep.
   */
  readonly deadline: number | null;
  readonly outcome: Outcome | null;
  readonly usage: RunUsage;
  readonly mergedInto: string | null;
  /** The sleeping or claimed run whose turn takes this input. Input kept for another run does not start a turn. */
  readonly keptFor: string | null;
  readonly startedBy: string | null;
  /** The unsuccessful run whose input this run processes again. */
  readonly retryOf: string | null;
  /** The run that processes this run's input again. */
  readonly retriedAs: string | null;
  /**
   * The app that defines the agent in code. Only its processes claim the run. `null` if any process with the agent can
   * claim it.
   */
  readonly app: string | null;
  /** Tools that a process of the app must offer before it can claim the run. */
  readonly requiredTools: readonly string[];
  /** `true` if the input is written without a model turn: a note, or a delivery that exceeds the budget. */
  readonly isSilent: boolean;
  readonly abortRequested: boolean;
}

/** Proves that a process owns a run. Each new claim raises the fence, and writes with an older fence are rejected. */
export interface HeldRun {
  readonly runId: string;
  readonly fence: number;
}

/** A run that this process has claimed. */
export interface Claim {
  readonly run: Run;
  /** Created once per claim and used by every later step of the run. */
  readonly held: HeldRun;
  /** The session's leaf when the fence was raised, read under the session's lock. */
  readonly leafId: string | null;
  /** `new` is the run's first claim. `recovered` means that its owner was lost. `woken` means that it was asleep. */
  readonly how: "new" | "recovered" | "woken";
  /** The first claim of the turn that this run continues. For a retry, this is the lost run's first claim. */
  readonly begunAt: number | null;
  /** `true` if the run retries a failed run, or a lost run after which other runs in the session have had a turn. */
  readonly isOvertaken: boolean;
  /**
   * The input that a woken run was sleeping for, oldest first. For an announcement, the other announcements in its
   * batch.
   */
  readonly arrivals: readonly Run[];
  /** Runs that a woken run was waiting for and that have not ended. */
  readonly stillOpen: readonly string[];
  /** Runs that a woken run was waiting for and that ended without an announcement. */
  readonly endedSilent: readonly string[];
}

/** Filters for a list of runs. */
export interface RunQuery {
  readonly states?: readonly RunState[];
  readonly sessionUid?: string;
  readonly rootId?: string;
  readonly startedBy?: string;
  /** Lists only input that came from the session with this key, whether as a spawn, message, reply or announcement. */
  readonly sourceKey?: string;
  readonly limit?: number;
  /** A seq. Only older runs are listed. */
  readonly before?: number;
  /** If `true`, lists only lost runs whose input has not been retried. */
  readonly lost?: boolean;
  /** If `true`, lists only queued runs that belong to an app and that this process cannot claim. */
  readonly waitsForApp?: boolean;
}

/** Why a run cannot continue. */
export interface RunWaits {
  /** The runs ahead of this one in its session, or the runs that it is waiting or sleeping for. */
  readonly runIds: readonly string[];
  /** The latest time at which a sleeping run wakes. */
  readonly wakeAt: number | null;
  /** The app whose process the queued run is waiting for. */
  readonly app: string | null;
  /** If this process belongs to that app, the required tools that it does not offer. */
  readonly missingTools: readonly string[];
  /** The name of the required store if this process does not have it. */
  readonly store?: string;
  /** `true` if the run's process has died. The next process that has the run's agent continues it. */
  readonly isOwnerGone?: boolean;
  /** Absent if the run is running or has ended. */
  readonly why?: RunWhy;
}

/** Explains why a run is not running now. */
export interface RunWhy {
  readonly kind: "lane" | "ahead" | "runs" | "approval" | "retry" | "app" | "worker" | "owner" | "stopping";
  /** The explanation as one sentence. */
  readonly text: string;
  readonly lane?: Lane;
  /** The number of runs ahead of this one in its session, up to 1,000. */
  readonly ahead?: number;
  readonly runIds?: readonly string[];
  readonly approvalId?: string;
  /** The run continues no later than this. */
  readonly retryAt?: number;
}

/** A lane's load. */
export interface LaneCount {
  readonly lane: Lane;
  readonly limit: number;
  readonly running: number;
  /** Sessions whose next run is waiting only for a free slot. */
  readonly queued: number;
}

/** Unfinished work. */
export interface OpenWork {
  /** The number of runs by state. */
  readonly runs: ReadonlyMap<RunState, number>;
  /** The number of messages that have not been delivered to a channel yet. */
  readonly outbox: number;
}

/** A session's activity, as shown in lists. */
export interface SessionWork {
  /**
   * `waiting` includes sleeping. `idle` means that no run is open, and that the last run succeeded or there has been
   * none.
   */
  readonly status: "idle" | "queued" | "running" | "waiting" | "error" | "timeout" | "aborted";
  /** When the session's first run was first claimed. */
  readonly startedAt: number | null;
  /** When the session's last run ended, or `null` while a run is open. */
  readonly endedAt: number | null;
  /** The running, waiting, sleeping or next run, or `null` if no run is open. */
  readonly runId: string | null;
  /** The number of inputs that are waiting for a separate turn. */
  readonly queued: number;
  /** The number of tool calls that are waiting for approval. */
  readonly approvals: number;
}

/** `entered: false` means that the wait would cause a deadlock. `cycle` lists the runs in the cycle. */
export type WaitEntered =
  | { readonly entered: true }
  | { readonly entered: false; readonly cycle: readonly string[] };

export interface ThreadRef {
  readonly channel: string;
  readonly accountId?: string;
  readonly threadId: string;
}

/** Identifies a schedule. Users can have schedules with the same name. */
export interface ScheduleId {
  readonly userId: string | null;
  readonly name: string;
}

/** A schedule's state, which all processes share. */
export interface ScheduleState {
  /** Due times up to this one have started a run or were skipped. */
  readonly settledUntil: number;
  /** `null` if the schedule is not paused. */
  readonly pausedAt: number | null;
  readonly lastRunId: string | null;
  /** When the last run was accepted. */
  readonly lastRunAt: number | null;
}

export interface BudgetLimits {
  readonly hops: number;
  readonly runs: number;
  readonly tokens: number | null;
  readonly costUsd: number | null;
  /** The messages exchanged by a pair of sessions under one root. */
  readonly pingPong: number;
}

/** The usage of a request and everything it has caused. */
export interface BudgetFigures {
  readonly rootId: string;
  readonly runs: number;
  readonly tokens: number;
  /** `null` if any price is unknown. */
  readonly costUsd: number | null;
  /** The total of all known prices. The cost limit applies to this value. */
  readonly knownCostUsd: number;
  readonly hops: number;
}

export interface ApprovalRequest {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly expiresAt: number;
}

/** Identifies the call that needs approval. */
export interface ApprovalIdentity {
  /** Distinguishes the call from other calls with the same ID. If absent, the ID is unique in the run. */
  readonly callDigest?: string;
  /** `true` if an earlier owner of the run might already have requested the approval. */
  readonly isReplay?: boolean;
}

/** A tool call that needs approval. */
export interface Approval extends ApprovalRequest {
  readonly approvalId: string;
  readonly runId: string;
  readonly session: SessionRef;
  readonly requestedAt: number;
  /** `null` while the approval is pending. */
  readonly answer: "approved" | "denied" | "expired" | null;
  readonly resolvedAt: number | null;
  readonly by: string | null;
  /** The reason a person gave for the denial. Shown to the model. */
  readonly note: string | null;
}

/** Filters for a list of approvals. */
export interface ApprovalQuery {
  readonly runId?: string;
  readonly sessionUid?: string;
  /** If absent, lists both pending and answered approvals. */
  readonly open?: boolean;
  /** Lists only the newest approvals, up to this number. */
  readonly limit?: number;
}

/** A message to a channel. */
export interface OutboxRequest {
  readonly session: SessionRef;
  readonly runId: string | null;
  readonly target: DeliveryTarget;
  readonly text: string;
  /**
   * Adding a row with the same key again changes nothing. The channel receives the key so that it can drop duplicates.
   */
  readonly idempotencyKey: string;
}

/** `dead` rows failed permanently or ran out of retries. `dropped` rows were canceled by an operator. */
export type OutboxState = "queued" | "delivered" | "dead" | "dropped";

/** A message to a channel, with its delivery state. */
export interface OutboxRow extends OutboxRequest {
  readonly outboxId: string;
  readonly state: OutboxState;
  readonly attempts: number;
  readonly createdAt: number;
  readonly nextAt: number;
  readonly endedAt: number | null;
  readonly lastError: string | null;
  /** The channel's response. */
  readonly receipt: unknown;
  /** The app whose code provides the channel. `null` if any process that has the channel can deliver the row. */
  readonly app: string | null;
  /** `true` if the row is queued and this process does not have its channel. */
  readonly waitsForChannel: boolean;
}
