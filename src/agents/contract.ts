import type { SessionContext } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import type { ToolCallBlock, Usage, UserMessage } from "../core/messages.ts";
import type { EntryDraft, MessageDraft } from "../core/seal.ts";
import type { Change, TranscriptMessage, TranscriptPolicy } from "../transcript/contract.ts";
import type { ModelInfo } from "../transcript/model-table.ts";

/**
 * Executes the turns of sessions. A runtime has no access to stores, queues or leases. The `Turn` that it receives
 * provides everything it needs.
 */
export interface Runtime {
  /** Continues the session until the turn ends. Throws a SkeinError if it cannot continue. */
  run(turn: Turn): Promise<TurnEnd>;
}

export type TurnEnd =
  /** The final answer has been written. */
  | { readonly kind: "answered"; readonly reply: string; readonly entryId: string; readonly output?: unknown }
  /** A tool requested sleep, and every call in its message has been answered. */
  | { readonly kind: "yielded"; readonly entryId: string; readonly sleep: SleepRequest };

export interface SleepRequest {
  /** If absent, the run waits for every open run that it started. */
  readonly waitFor?: readonly string[];
}

/** The run, session and user that a turn belongs to. */
export interface TurnAbout {
  readonly runId: string;
  readonly userId: string | null;
  readonly agentId: string;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly cwd: string;
  /** The folder for the session's attachments. Absent or `null` if there is none. */
  readonly attachments?: string | null;
}

/** A model that a turn can call. */
export interface TurnModel {
  /** The name recorded in the transcript. */
  readonly provider: string;
  readonly model: string;
  readonly policy: TranscriptPolicy;
  readonly info: Partial<ModelInfo>;
  /** In dollars per million tokens. `null` if unknown, in which case no cost is recorded. */
  readonly price: ModelPrice | null;
  /** Opens an AI SDK `LanguageModelV4`. Called on the first request so that a missing key fails only the run. */
  open(): Promise<unknown>;
}

export interface ModelPrice {
  /** The URL of the price list, or `configuration`. */
  readonly source: string;
  /** The date of the price list, such as 2026-11-15. */
  readonly date?: string;
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
}

/**
 * Everything a runtime can do in a turn. Every write goes through the guard and is checked against the run's fence. A
 * `fenced` error ends the turn.
 */
export interface Turn {
  readonly about: TurnAbout;
  /** Aborted by a user, at the deadline, or because another process now owns the run. */
  readonly signal: AbortSignal;
  readonly model: TurnModel;
  readonly system: string | null;
  readonly thinkingLevel: string;
  /** Read these again for each step, because a call can activate more tools. */
  readonly tools: readonly Tool[];
  readonly limits: TurnLimits;
  /** A JSON Schema that the final answer must match. */
  readonly outputSchema: Readonly<Record<string, unknown>> | null;
  /** Calls that a previous owner of the run left unanswered, and the entry that contains them. */
  readonly open: { readonly entryId: string; readonly calls: readonly ToolCallBlock[] } | null;
  /** Returns the session's current context, adapted to this model. */
  request(options?: RequestOptions): Promise<TurnRequest>;
  /** Writes a message. The run continues even if the guard rejects the message. */
  say(message: MessageDraft): Promise<Said>;
  /** Writes an entry for users that is not a message, such as a plan. */
  note(draft: EntryDraft): Promise<void>;
  /**
   * Writes input that was steered into this turn. Call this between steps, once every call has been answered. Returns
   * `true` if there was input.
   */
  takeInput(): Promise<boolean>;
  /** Call this before each step and each tool call. Throws if the run has ended or another process owns it. */
  check(): Promise<void>;
  /** Call this after each answer. Throws `budget_exceeded`, which ends the turn. */
  charge(usage: Usage): Promise<void>;
  /**
   * Shrinks a context that is too large. Returns `true` if the next request is smaller, `false` if nothing more can be
   * removed.
   */
  makeRoom(
    size: { readonly tokens: number; readonly contextWindow: number },
    why: "threshold" | "overflow",
  ): Promise<boolean>;
  /** Frees the run's slot while a tool waits for other runs. If absent, the slot is kept. */
  readonly whileWaiting?: ToolCallContext["whileWaiting"];
  /**
   * Requests approval from a user. A request that is not answered in time is denied. An abort withdraws the request and
   * throws the abort reason.
   */
  approve(
    call: ToolCallBlock,
    options?: ApproveOptions,
  ): Promise<{ readonly approved: boolean; readonly note: string }>;
  readonly hooks: TurnHooks;
  /** The run's instances of the agent's state modules, by key. */
  readonly state: Readonly<Record<string, unknown>>;
  /** Removes local paths from the text of a failed call. If absent, the model is allowed to see them. */
  readonly hidePaths?: (text: string) => string;
  emit(event: TurnEvent): void;
  /** Set only for ACP sessions. */
  readonly acp?: AcpLink;
}

/** Links one of Skein's sessions to a session of an ACP agent. */
export interface AcpLink {
  /** The agent's name in the configuration. */
  readonly agent: string;
  /** The agent's own session ID, or `null` if it has none yet. */
  readonly agentSessionId: string | null;
  /** An earlier agent session to resume. */
  readonly resumeSessionId: string | null;
  /** The model to select, or `null` for the agent's default. */
  readonly model: string | null;
  readonly thinking: string | null;
  /** The mark on the agent's last process for this session, or `null` if there was none. */
  readonly processMark: string | null;
  /** If set to `run`, the agent's process ends with the run. */
  readonly mode: "run" | "session";
  /**
   * `true` if an earlier owner of the run crashed or stopped. Parts of the prompt might already have been carried out.
   */
  readonly wasBegun: boolean;
  /** Stores both values with the session. Call this before the first prompt. */
  remember(agentSessionId: string, processMark: string): Promise<void>;
  /** The messages since the agent's last answer, oldest first. */
  unanswered(): Promise<readonly UserMessage[]>;
  /** Returns the bytes of a blob that a message refers to, or `null` if it is missing. */
  blob(sha256: string): Promise<Uint8Array | null>;
}

/** Everything a turn's requests are built from, except the messages. */
export interface RequestPlan extends Pick<Turn, "model" | "system" | "thinkingLevel" | "outputSchema"> {
  readonly tools: readonly Pick<Tool, "name" | "description" | "inputSchema">[];
  readonly limits: Pick<TurnLimits, "maxOutputTokens">;
}

export interface TurnLimits {
  /** The maximum number of model calls in a turn. Defaults to 50. */
  readonly maxSteps: number;
  /** A stream that sends nothing for this long is treated as failed. Defaults to 120,000. */
  readonly stallMs: number;
  /** Defaults to 3. */
  readonly maxRetries: number;
  readonly maxOutputTokens?: number;
}

/** Options for the model requests that write summaries. */
export interface SummarizerOptions {
  readonly signal: AbortSignal;
  readonly limits: Pick<TurnLimits, "stallMs" | "maxRetries">;
  /** Called with the usage from each answer. */
  onUsage(usage: Usage): void;
  onRetry?(event: Extract<TurnEvent, { type: "retry" }>): void;
}

export interface ApproveOptions {
  /** Withdraws the request. */
  readonly signal?: AbortSignal;
  /** Distinguishes the call from other calls with the same ID. If absent, the ID is unique in the run. */
  readonly callDigest?: string;
  /** `true` if an earlier owner of the run might already have requested the approval. */
  readonly isReplay?: boolean;
}

export interface RequestOptions {
  /** Omits encrypted thinking from this request and every later request in the turn. */
  readonly isSealedThinkingRejected?: boolean;
}

export interface TurnRequest {
  readonly messages: readonly TranscriptMessage[];
  readonly context: SessionContext;
  readonly changes: readonly Change[];
  /** An estimate. Above the threshold, the loop frees space before sending. */
  readonly tokens: number;
  readonly isOverThreshold: boolean;
}

export interface Said {
  /** The message that was written, or `null` if the guard rejected it. */
  readonly entry: Entry | null;
  readonly refused: string | null;
  /** `true` if every call in the answer was invalid and removed. Another message tells the model why. */
  readonly hasOnlyInvalidCalls?: true;
}

/** A turn's hooks, bound to its run. */
export interface TurnHooks {
  beforeToolCall(
    call: ToolCallBlock,
  ): Promise<{ readonly arguments: Readonly<Record<string, unknown>>; readonly block: string | null }>;
  afterToolCall(call: ToolCallBlock, result: MessageDraft, durationMs: number): Promise<void>;
  llmInput(messages: readonly TranscriptMessage[]): Promise<void>;
  llmOutput(message: MessageDraft): Promise<void>;
}

export type TurnEvent =
  | { readonly type: "delta"; readonly kind: "text" | "thinking"; readonly delta: string }
  | { readonly type: "tool_call"; readonly call: ToolCallBlock }
  | {
      readonly type: "tool_result";
      readonly call: ToolCallBlock;
      readonly isError: boolean;
      readonly content: readonly unknown[];
      readonly durationMs: number;
    }
  | {
      readonly type: "retry";
      readonly attempt: number;
      readonly delayMs: number;
      readonly code: string;
      readonly error: string;
    }
  /** A sent request or a received answer, for telemetry. */
  | {
      readonly type: "step";
      readonly phase: "asked" | "answered";
      readonly step: number;
      readonly usage?: Usage;
      readonly finishReason?: string;
      /** The error code, if the request failed. */
      readonly code?: string;
    };

/** A tool that a turn can call. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  /** A JSON Schema for an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** `safe` means that the tool can be called again after a crash, when the outcome of the first call is unknown. */
  readonly replay: "safe" | "never";
  /** For example, `group:sessions`. */
  readonly groups: readonly string[];
  /** `true` if the tool runs after all other calls in its message, so that it sees what they started. */
  readonly isLast?: boolean;
  /**
   * Returns the arguments to write to the log. The call itself always receives all arguments. If this method is absent,
   * all arguments are logged.
   */
  persisted?(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  needsApproval(args: Readonly<Record<string, unknown>>): boolean | Promise<boolean>;
  /** Returns the parsed arguments, or the problem and its path. */
  check(
    args: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly args: unknown } | { readonly problem: string }>;
  /** A thrown error becomes a failed result, and the run continues. */
  execute(args: unknown, call: ToolCallContext): Promise<ToolOutput>;
}

export interface ToolCallContext {
  readonly about: TurnAbout;
  readonly toolCallId: string;
  /** The entry that contains the call. The IDs of runs and sessions that a tool starts are derived from it. */
  readonly entryId: string;
  readonly signal: AbortSignal;
  /** The session's state modules, by key. */
  readonly state: Readonly<Record<string, unknown>>;
  /** Frees the run's slot during `wait`, for tools that wait for other runs. */
  whileWaiting<T>(
    runIds: readonly string[],
    wait: () => Promise<T>,
  ): Promise<
    | { readonly entered: true; readonly value: T }
    | { readonly entered: false; readonly cycle: readonly string[] }
  >;
}

export interface ToolOutput {
  readonly content: readonly (
    | { readonly type: "text"; readonly text: string }
    | { readonly type: "image"; readonly data: string; readonly mimeType: string }
  )[];
  readonly isError?: boolean;
  /** Shown to users, never to the model. */
  readonly details?: unknown;
  /** Ends the turn once every call in this message has been answered. */
  readonly sleep?: SleepRequest;
}

/** The shape of a `LanguageModelV4`. Defined here so that this package's types do not depend on the AI SDK's. */
export interface LanguageModel {
  readonly specificationVersion: "v4";
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: PromiseLike<Record<string, RegExp[]>> | Record<string, RegExp[]>;
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<unknown>;
}

/** The shape of an `EmbeddingModelV4`. */
export interface EmbeddingModel {
  readonly specificationVersion: "v4";
  readonly provider: string;
  readonly modelId: string;
  readonly maxEmbeddingsPerCall: PromiseLike<number | undefined> | number | undefined;
  doEmbed(options: never): PromiseLike<unknown>;
}

/** Token counts for an answer, as reported by the AI SDK. */
export interface StepUsage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly inputTokenDetails?: {
    readonly noCacheTokens?: number | undefined;
    readonly cacheReadTokens?: number | undefined;
    readonly cacheWriteTokens?: number | undefined;
  };
}
