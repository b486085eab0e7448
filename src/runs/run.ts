import type { Provenance, Usage } from "../core/messages.ts";
import type { MessageDraft } from "../core/seal.ts";
import type { SessionRef } from "../core/session-ref.ts";

/** The first four states are open; in any other state the run has ended. */
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

/** Where input comes from. The lane follows from it; clients cannot choose one. */
export type InputKind = "user" | "channel" | "cron" | "send" | "ping_pong" | "announce" | "spawn" | "note";

export type Lane = "main" | "subagent" | "cron" | "nested";

export type QueueMode = "steer" | "followup" | "interrupt";

/** Where a message goes on a channel. */
export interface DeliveryTarget {
  readonly channel: string;
  readonly to?: string;
  readonly accountId?: string;
  readonly threadId?: string;
}

/** Settings of one run. Stored as JSON. */
export interface RunOptions {
  readonly model?: string;
  readonly thinking?: string;
  /** 0: no limit. Absent: the agent's limit, or an hour. */
  readonly runTimeoutSeconds?: number;
  /** Replaces the agent's system prompt. */
  readonly system?: string;
  /** Appended to the system prompt. */
  readonly extraSystemPrompt?: string;
  /** JSON Schema of an object that the answer must match. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  /** The only tools that the run may use, by name, group or glob. */
  readonly tools?: readonly string[];
  /** Where the reply is delivered if the run succeeds. Absent: nowhere. */
  readonly deliverTo?: DeliveryTarget;
  /** Where the prompt was typed. Decides whether it may name image files. */
  readonly origin?: "cli" | "console" | "channel" | "webhook" | "inter_session" | "api";
  /** Started when the run ends, in the process that ends it. */
  readonly sequel?: Sequel;
  /** Progress of a spawned run is relayed to the session that spawned it. */
  readonly streamTo?: "parent";
  /** For a tool call of a run: the entry of the message that made the call, in the session that made it. */
  readonly callEntryId?: string;
  /** When its message was replaced. A repetition of the first request still is the same request. */
  readonly editedAt?: number;
  /** For a tool call: identifies repetitions of the call under the same idempotency key. */
  readonly requestDigests?: RequestDigests;
}

/** Digests of a request's parameters, by name. Erased together with the input that they describe. */
export type RequestDigests = Readonly<Record<string, string>>;

/** A request and everything that it causes share a root. */
export interface RootRef {
  readonly rootId: string;
  readonly hops: number;
}

export interface AcceptRequest {
  readonly session: SessionRef;
  readonly kind: InputKind;
  /** Written into the session under `entryId` when its turn comes. */
  readonly message: MessageDraft;
  readonly runId?: string;
  readonly entryId?: string;
  /** The same key of the same user returns the same run, even after a restart. */
  readonly idempotencyKey?: string;
  readonly queueMode?: QueueMode;
  readonly options?: RunOptions;
  readonly provenance?: Provenance;
  /** Absent: input from outside, which opens its own root. */
  readonly root?: RootRef;
  /** The uids of two sessions that exchange messages and did not spawn each other. Counted against the ping-pong limit. */
  readonly pair?: readonly [string, string];
  /** The run whose end this input announces. Kept for a run that sleeps until that end. */
  readonly arrivalOf?: string;
  /** The run that started this one with a send or a spawn. */
  readonly startedBy?: string;
  /** Over the budget, a delivery is written without a model turn; other input is refused. */
  readonly isDelivery?: boolean;
  /** Registers a waiter for the reply in the same transaction. */
  readonly awaitedBy?: Awaiting;
  /** Registers and counts the session as a spawned child in the same transaction. */
  readonly child?: ChildRequest;
  /** The lost or failed run whose input this run processes again. */
  readonly retryOf?: string;
}

export interface Accepted {
  readonly run: Run;
  /** `false`: the run was already known, and nothing changed. */
  readonly isNew: boolean;
}

/**
 * A waiter for the reply of a run. While it waits, the reply belongs to it and the run's sequel does not start. If its run
 * ends, its process dies or its time runs out first, the sequel starts instead.
 */
export interface Awaiting {
  readonly by: { readonly runId: string } | { readonly owner: string };
  readonly until: number;
}

/** `taken`: the run has ended and the waiter has the reply. `late`: the sequel delivers the reply. */
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
  /** How many children of the parent may have an open first run. Exceeding it is `children_exceeded`. */
  readonly maxChildren: number;
  /** The folder of its attachments, removed with the child. Absent: there are none, or they are kept. */
  readonly attachments?: string;
  /** Time from its end until it is archived. Absent: never archived. */
  readonly archiveAfterMs?: number;
}

export interface Child extends Omit<ChildRequest, "maxChildren"> {
  /** Its first run. */
  readonly run: Run;
  /** When the child was archived or removed; `null`: neither. */
  readonly tidiedAt: number | null;
}

/** One side of an exchange between two sessions. Stored as JSON. */
export interface Party extends Pick<SessionRef, "key" | "sessionId"> {
  /** Absent: the session is not on a channel. */
  readonly channel?: string;
}

/**
 * Work that starts when a run ends: planned in the transaction that ends it, in any process, so it contains everything
 * that is needed. Stored as JSON. Does not start if a waiter takes the reply ({@link Awaiting}).
 */
export type Sequel = ReplySequel | PingPongSequel | ChildSequel;

export interface ExchangeTerms {
  readonly asker: Party;
  readonly target: Party;
  /** At most 4,000 characters of the asker's message. */
  readonly request: string;
  /** The maximum number of ping-pong turns; 0: the asker only gets the reply. */
  readonly turns: number;
  /** The target's outside channel, where it announces the result. Absent: it has none. */
  readonly announceTo?: DeliveryTarget;
  /** Where the asker announces the result. Absent: in its own session. */
  readonly deliverTo?: DeliveryTarget;
}

/** The reply to a message goes back to the session that sent it. */
export interface ReplySequel extends ExchangeTerms {
  readonly type: "reply";
}

/** One turn of the exchange that follows a reply. After the last one, both sides may announce the result. */
export interface PingPongSequel extends ExchangeTerms {
  readonly type: "ping_pong";
  /** Starts at 1; odd turns are the asker's. */
  readonly turn: number;
  readonly firstReply: string;
  readonly latestReply: string;
}

/** The end of a spawned session's first run is announced to its parent. */
export interface ChildSequel {
  readonly type: "child";
  readonly parent: Party;
  readonly childKey: string;
  readonly label?: string;
  readonly task: string;
  /** The model that the spawn asked for. Compared when the call is repeated. */
  readonly model?: string;
  /** Where the parent's answer to the announcement goes. */
  readonly deliverTo?: DeliveryTarget;
}

/** How a run ended. */
export interface Outcome {
  readonly state: EndState;
  /** A stable error code, unless the run succeeded. */
  readonly code?: string;
  readonly error?: string;
  /** The text of the last answer. */
  readonly reply?: string;
  /** The last entry that the run wrote. */
  readonly entryId?: string;
  /** The answer parsed by `outputSchema`. */
  readonly output?: unknown;
}

/** The tokens and cost of a run. */
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
  /** Rises with every accepted input; orders the turns of a session. */
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
  /** `null`: no limit, or not claimed yet. Does not advance while the run sleeps. */
  readonly deadline: number | null;
  readonly outcome: Outcome | null;
  readonly usage: RunUsage;
  readonly mergedInto: string | null;
  /** The sleeping or claimed run whose turn takes this input. Such input does not start its own turn. */
  readonly keptFor: string | null;
  readonly startedBy: string | null;
  /** The lost or failed run whose input this run processes again. */
  readonly retryOf: string | null;
  /** The run that processes the input of this run again. */
  readonly retriedAs: string | null;
  /** The app that defines the agent in code; only its processes claim the run. `null`: any process with the agent does. */
  readonly app: string | null;
  /** Tools that a process of the app must offer to claim the run. */
  readonly requiredTools: readonly string[];
  /** Written without a model turn: a note, or a delivery over the budget. */
  readonly isSilent: boolean;
  readonly abortRequested: boolean;
}

/** Proves that a process owns a run: a later claim raises the fence, and every write under the old one is refused. */
export interface HeldRun {
  readonly runId: string;
  readonly fence: number;
}

/** A run that this process owns from now on. */
export interface Claim {
  readonly run: Run;
  /** Created once per claim; every later step of the run uses this value. */
  readonly held: HeldRun;
  /** The session's leaf when the fence was raised, read under the session's lock. */
  readonly leafId: string | null;
  /** `new`: its first claim. `recovered`: its owner was lost. `woken`: it slept. */
  readonly how: "new" | "recovered" | "woken";
  /** The first claim of the turn that it continues; for a retry, the first claim of the lost run. */
  readonly begunAt: number | null;
  /** It retries a run that failed, or a lost run after which other runs of the session had their turn. */
  readonly isOvertaken: boolean;
  /** Input that a woken run slept for, oldest first; for an announcement, the other announcements in its batch. */
  readonly arrivals: readonly Run[];
  /** Runs that a woken run slept for and that are still open. */
  readonly stillOpen: readonly string[];
  /** Runs that a woken run slept for and that ended without an announcement. */
  readonly endedSilent: readonly string[];
}

/** Which runs a list shows. */
export interface RunQuery {
  readonly states?: readonly RunState[];
  readonly sessionUid?: string;
  readonly rootId?: string;
  readonly startedBy?: string;
  /** Only input that the session with this key spawned, sent, replied or announced. */
  readonly sourceKey?: string;
  readonly limit?: number;
  /** A seq; only older runs are listed. */
  readonly before?: number;
  /** `true`: only lost runs whose input was not retried. */
  readonly lost?: boolean;
  /** `true`: only queued runs that wait for a process of another app. */
  readonly waitsForApp?: boolean;
}

/** Why a run does not continue. */
export interface RunWaits {
  /** The runs ahead of it in its session, or that it waits or sleeps for. */
  readonly runIds: readonly string[];
  /** The latest time at which a sleeping run wakes. */
  readonly wakeAt: number | null;
  /** The app whose process a queued run waits for. */
  readonly app: string | null;
  /** In a process of that app: the required tools that the process does not offer. */
  readonly missingTools: readonly string[];
  /** The name of a store that this process does not have. */
  readonly store?: string;
  /** `true`: its process is gone. The next process that has its agent continues it. */
  readonly isOwnerGone?: boolean;
  /** Absent: it runs or has ended. */
  readonly why?: RunWhy;
}

/** Why a run does not run now. */
export interface RunWhy {
  readonly kind: "lane" | "ahead" | "runs" | "approval" | "retry" | "app" | "owner" | "stopping";
  /** One sentence. */
  readonly text: string;
  readonly lane?: Lane;
  /** How many runs of its session come first, up to 1,000. */
  readonly ahead?: number;
  readonly runIds?: readonly string[];
  readonly approvalId?: string;
  /** When it continues at the latest. */
  readonly retryAt?: number;
}

/** How full a lane is. */
export interface LaneCount {
  readonly lane: Lane;
  readonly limit: number;
  readonly running: number;
  /** Sessions whose next run only needs a free place. */
  readonly queued: number;
}

/** The activity of a session, as lists show it. */
export interface SessionWork {
  /** `waiting` includes sleeping. `idle`: nothing is open, and the last run succeeded or there was none. */
  readonly status: "idle" | "queued" | "running" | "waiting" | "error" | "timeout" | "aborted";
  /** The first claim of its first run. */
  readonly startedAt: number | null;
  /** The end of its last run; `null` while one is open. */
  readonly endedAt: number | null;
  /** The running, waiting, sleeping or next run; `null`: nothing is open. */
  readonly runId: string | null;
  /** How many inputs wait for their own turn. */
  readonly queued: number;
  /** How many tool calls wait for an approval. */
  readonly approvals: number;
}

/** `entered: false`: the wait would deadlock; `cycle` lists the runs. */
export type WaitEntered =
  | { readonly entered: true }
  | { readonly entered: false; readonly cycle: readonly string[] };

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
  /** Messages between one pair of sessions under one root. */
  readonly pingPong: number;
}

/** The usage of a request and everything that it caused. */
export interface BudgetFigures {
  readonly rootId: string;
  readonly runs: number;
  readonly tokens: number;
  /** `null` if any price is unknown. */
  readonly costUsd: number | null;
  /** The cost of everything with a known price, which the limit applies to. */
  readonly knownCostUsd: number;
  readonly hops: number;
}

export interface ApprovalRequest {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly expiresAt: number;
}

/** A tool call that needs approval. */
export interface Approval extends ApprovalRequest {
  readonly approvalId: string;
  readonly runId: string;
  readonly session: SessionRef;
  readonly requestedAt: number;
  /** `null`: still open. */
  readonly answer: "approved" | "denied" | "expired" | null;
  readonly resolvedAt: number | null;
  readonly by: string | null;
  /** The reason that a person gave with a denial; the model reads it. */
  readonly note: string | null;
}

/** Which approvals a list shows. */
export interface ApprovalQuery {
  readonly runId?: string;
  readonly sessionUid?: string;
  /** Absent: both open and answered ones. */
  readonly open?: boolean;
  /** Only the newest ones, up to this many. */
  readonly limit?: number;
}

/** A message to a channel. */
export interface OutboxRequest {
  readonly session: SessionRef;
  readonly runId: string | null;
  readonly target: DeliveryTarget;
  readonly text: string;
  /**
   * Adding a row with the same key again changes nothing. The key is passed to the channel, so that it can drop a
   * duplicate.
   */
  readonly idempotencyKey: string;
}

/** `dead`: given up after retries. `dropped`: cancelled by an operator. */
export type OutboxState = "queued" | "delivered" | "dead" | "dropped";

/** A message to a channel, with the state of its delivery. */
export interface OutboxRow extends OutboxRequest {
  readonly outboxId: string;
  readonly state: OutboxState;
  readonly attempts: number;
  readonly createdAt: number;
  readonly nextAt: number;
  readonly endedAt: number | null;
  readonly lastError: string | null;
  /** The response of the channel. */
  readonly receipt: unknown;
  /** The app whose code provides the channel; `null`: any process that has the channel delivers it. */
  readonly app: string | null;
  /** It is queued, and this process does not have its channel. */
  readonly waitsForChannel: boolean;
}
