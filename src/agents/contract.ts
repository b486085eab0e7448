import type { SessionContext } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import type { ToolCallBlock, Usage, UserMessage } from "../core/messages.ts";
import type { EntryDraft, MessageDraft } from "../core/seal.ts";
import type { Change, TranscriptMessage, TranscriptPolicy } from "../transcript/contract.ts";
import type { ModelInfo } from "../transcript/model-table.ts";

/**
 * Answers a turn of a session. A runtime has no access to stores, queues or leases; it gets what it needs as a `Turn`.
 */
export interface Runtime {
  /** Continues the session until there is nothing more to do. Throws a SkeinError if it cannot continue. */
  run(turn: Turn): Promise<TurnEnd>;
}

export type TurnEnd =
  /** The last answer is written. */
  | { readonly kind: "answered"; readonly reply: string; readonly entryId: string; readonly output?: unknown }
  /** A tool asked to sleep, and every call of its message is answered. */
  | { readonly kind: "yielded"; readonly entryId: string; readonly sleep: SleepRequest };

export interface SleepRequest {
  /** Absent: every open run that this one started. */
  readonly waitFor?: readonly string[];
}

/** The run, session and user of a turn. */
export interface TurnAbout {
  readonly runId: string;
  readonly userId: string | null;
  readonly agentId: string;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly cwd: string;
  /** The folder of the session's attachments; absent or `null`: there is none. */
  readonly attachments?: string | null;
}

/** A model that a turn can ask. */
export interface TurnModel {
  /** As written into the transcript. */
  readonly provider: string;
  readonly model: string;
  readonly policy: TranscriptPolicy;
  readonly info: Partial<ModelInfo>;
  /** In dollars per million tokens; `null`: unknown, so no cost is recorded. */
  readonly price: ModelPrice | null;
  /** Opens a `LanguageModelV4` of the AI SDK. Called at the first request, so that a missing key is an error of the run. */
  open(): Promise<unknown>;
}

export interface ModelPrice {
  /** The address of the price list, or `configuration`. */
  readonly source: string;
  /** The day of the price list, as 2026-11-15. */
  readonly date?: string;
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
}

/** Everything a runtime can do in a turn. All writes go through the guard, under the run's fence; `fenced` ends the turn. */
export interface Turn {
  readonly about: TurnAbout;
  /** Aborted by a person, by the deadline, or because another process owns the run. */
  readonly signal: AbortSignal;
  readonly model: TurnModel;
  readonly system: string | null;
  readonly thinkingLevel: string;
  /** Read it for each step: a call can activate more tools. */
  readonly tools: readonly Tool[];
  readonly limits: TurnLimits;
  /** A JSON Schema that the final answer must match. */
  readonly outputSchema: Readonly<Record<string, unknown>> | null;
  /** Calls that a previous owner of the run left unanswered, and the entry of their message. */
  readonly open: { readonly entryId: string; readonly calls: readonly ToolCallBlock[] } | null;
  /** The current context of the session, made valid for this model. */
  request(options?: RequestOptions): Promise<TurnRequest>;
  /** Writes a message. If the message is refused, the run continues. */
  say(message: MessageDraft): Promise<Said>;
  /** Writes an entry for people that is not a message, such as a plan. */
  note(draft: EntryDraft): Promise<void>;
  /** Writes input that was steered into this turn. Call it between steps, when every call is answered. `true`: there was input. */
  takeInput(): Promise<boolean>;
  /** Call it before each step and each tool. Throws when the run ends or another process owns it. */
  check(): Promise<void>;
  /** Call it after each answer; `budget_exceeded` ends the turn. */
  charge(usage: Usage): Promise<void>;
  /** Shrinks a context that is too large. `true`: the next request is smaller. `false`: nothing more can be done. */
  makeRoom(
    size: { readonly tokens: number; readonly contextWindow: number },
    why: "threshold" | "overflow",
  ): Promise<boolean>;
  /** Frees the slot while a tool waits for other runs. Absent: the slot is kept. */
  readonly whileWaiting?: ToolCallContext["whileWaiting"];
  /**
   * Asks a person for approval. An approval without an answer in time is denied. An abort withdraws the request and
   * throws the reason.
   */
  approve(
    call: ToolCallBlock,
    signal?: AbortSignal,
  ): Promise<{ readonly approved: boolean; readonly note: string }>;
  readonly hooks: TurnHooks;
  /** The run's instances of the agent's state modules, by key. */
  readonly state: Readonly<Record<string, unknown>>;
  /** Removes paths of this machine from the text of a failed call. Absent: the model may see them. */
  readonly hidePaths?: (text: string) => string;
  emit(event: TurnEvent): void;
  /** Set only for sessions of ACP agents. */
  readonly acp?: AcpLink;
}

/** The session of an ACP agent that belongs to one of our sessions. */
export interface AcpLink {
  /** Its name in the configuration. */
  readonly agent: string;
  /** The agent's own ID for its session; `null`: there is none yet. */
  readonly agentSessionId: string | null;
  /** An earlier session of the agent to resume. */
  readonly resumeSessionId: string | null;
  /** The model to select; `null`: the agent's default. */
  readonly model: string | null;
  readonly thinking: string | null;
  /** The mark of the agent's last process for this session; `null`: there was none. */
  readonly processMark: string | null;
  /** `run`: the agent's process ends with the run. */
  readonly mode: "run" | "session";
  /** An earlier owner of the run was lost or stopped; the prompt may have been carried out in part. */
  readonly wasBegun: boolean;
  /** Stores both with the session. Call it before the first prompt. */
  remember(agentSessionId: string, processMark: string): Promise<void>;
  /** The messages since the agent's last answer, oldest first. */
  unanswered(): Promise<readonly UserMessage[]>;
  /** The bytes of a blob that a message refers to; `null`: missing. */
  blob(sha256: string): Promise<Uint8Array | null>;
}

/** The input for the requests of a turn, besides the messages. */
export interface RequestPlan extends Pick<Turn, "model" | "system" | "thinkingLevel" | "outputSchema"> {
  readonly tools: readonly Pick<Tool, "name" | "description" | "inputSchema">[];
  readonly limits: Pick<TurnLimits, "maxOutputTokens">;
}

export interface TurnLimits {
  /** Maximum number of model calls in a turn. Default: 50. */
  readonly maxSteps: number;
  /** A stream that sends nothing for this long is an error. Default: 120,000. */
  readonly stallMs: number;
  /** Default: 3. */
  readonly maxRetries: number;
  readonly maxOutputTokens?: number;
}

/** Options of the model requests that write summaries. */
export interface SummarizerOptions {
  readonly signal: AbortSignal;
  readonly limits: Pick<TurnLimits, "stallMs" | "maxRetries">;
  /** Called with the usage of each answer. */
  onUsage(usage: Usage): void;
  onRetry?(event: Extract<TurnEvent, { type: "retry" }>): void;
}

export interface RequestOptions {
  /** Leaves out encrypted thinking from this request and every later one of the turn. */
  readonly isSealedThinkingRejected?: boolean;
}

export interface TurnRequest {
  readonly messages: readonly TranscriptMessage[];
  readonly context: SessionContext;
  readonly changes: readonly Change[];
  /** Estimated. Over the threshold, the loop first makes room. */
  readonly tokens: number;
  readonly isOverThreshold: boolean;
}

export interface Said {
  /** The message itself; `null`: it was refused. */
  readonly entry: Entry | null;
  readonly refused: string | null;
  /** Every call of the answer was invalid and removed; a message tells the model why. */
  readonly hasOnlyInvalidCalls?: true;
}

/** The hooks of a turn, bound to its run. */
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
  /** A request was sent or an answer arrived; for telemetry. */
  | {
      readonly type: "step";
      readonly phase: "asked" | "answered";
      readonly step: number;
      readonly usage?: Usage;
      readonly finishReason?: string;
      /** The error code, if the request failed. */
      readonly code?: string;
    };

/** A tool as a turn calls it. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  /** A JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** `safe`: may be called again after a crash, when the outcome of the first call is unknown. */
  readonly replay: "safe" | "never";
  /** Such as `group:sessions`. */
  readonly groups: readonly string[];
  /** Called after all other calls of its message, so that it sees what they started. */
  readonly isLast?: boolean;
  /** The arguments as written to the log; the call itself gets all of them. Absent: they are the same. */
  persisted?(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  needsApproval(args: Readonly<Record<string, unknown>>): boolean | Promise<boolean>;
  /** The parsed arguments, or the problem with its path. */
  check(
    args: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly args: unknown } | { readonly problem: string }>;
  /** An error becomes a failed result, and the run continues. */
  execute(args: unknown, call: ToolCallContext): Promise<ToolOutput>;
}

export interface ToolCallContext {
  readonly about: TurnAbout;
  readonly toolCallId: string;
  /** The entry of the message that made the call. IDs of runs and sessions that a tool starts derive from it. */
  readonly entryId: string;
  readonly signal: AbortSignal;
  /** The session's state modules, by key. */
  readonly state: Readonly<Record<string, unknown>>;
  /** Frees the run's slot during `wait`; for tools that wait for other runs. */
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
  /** For people, never for the model. */
  readonly details?: unknown;
  /** Ends the turn once every call of this message is answered. */
  readonly sleep?: SleepRequest;
}

/** The shape of a `LanguageModelV4`, so that the types of this package do not need those of the AI SDK. */
export interface LanguageModel {
  readonly specificationVersion: "v4";
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: PromiseLike<Record<string, RegExp[]>> | Record<string, RegExp[]>;
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<unknown>;
}

/** The tokens of an answer, as the AI SDK counts them. */
export interface StepUsage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly inputTokenDetails?: {
    readonly noCacheTokens?: number | undefined;
    readonly cacheReadTokens?: number | undefined;
    readonly cacheWriteTokens?: number | undefined;
  };
}
