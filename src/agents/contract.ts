import type { SessionContext } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import type { ToolCallBlock, Usage, UserMessage } from "../core/messages.ts";
import type { EntryDraft, MessageDraft } from "../core/seal.ts";
import type { Change, TranscriptMessage, TranscriptPolicy } from "../transcript/contract.ts";
import type { ModelInfo } from "../transcript/model-table.ts";

/** What makes a session answer, and what it is given for one turn. A runtime knows no store, no queue and no lease. */
export interface Runtime {
  /** From where the session stands until there is nothing more to do. Throws a SkeinError where it cannot go on. */
  run(turn: Turn): Promise<TurnEnd>;
}

export type TurnEnd =
  /** The last answer is written. */
  | { readonly kind: "answered"; readonly reply: string; readonly entryId: string; readonly output?: unknown }
  /** A tool asked to sleep, and every call of its message is answered. */
  | { readonly kind: "yielded"; readonly entryId: string; readonly sleep: SleepRequest };

export interface SleepRequest {
  /** Left out: every open run that this one started. */
  readonly waitFor?: readonly string[];
}

/** Who is asked, and for whom. */
export interface TurnAbout {
  readonly runId: string;
  readonly userId: string | null;
  readonly agentId: string;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly cwd: string;
  /** Where the session's attachments are kept; left out or `null`: nowhere. */
  readonly attachments?: string | null;
}

/** A model, ready to be asked. */
export interface TurnModel {
  /** As it is written into the transcript. */
  readonly provider: string;
  readonly model: string;
  readonly policy: TranscriptPolicy;
  readonly info: Partial<ModelInfo>;
  /** Dollars per million tokens; `null`: not known, and then no cost is. */
  readonly price: ModelPrice | null;
  /** `LanguageModelV4` of the AI SDK; opened at the first request, so that a missing key is an error of the run. */
  open(): Promise<unknown>;
}

export interface ModelPrice {
  /** The price list that it was taken from, or `configuration`. */
  readonly source: string;
  /** The day on which it was taken from there, as 2026-11-15. */
  readonly date?: string;
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
}

/** The ports of a turn. All writes go through the guard and under the run's fence; `fenced` ends the turn. */
export interface Turn {
  readonly about: TurnAbout;
  /** Aborted by people, by the deadline, or because the run is not ours any more. */
  readonly signal: AbortSignal;
  readonly model: TurnModel;
  readonly system: string | null;
  readonly thinkingLevel: string;
  /** Read them for each step: a call may have activated more. */
  readonly tools: readonly Tool[];
  readonly limits: TurnLimits;
  /** A JSON Schema that the answer has to fit. */
  readonly outputSchema: Readonly<Record<string, unknown>> | null;
  /** Calls that a lost owner left open, and the entry of the message that made them. */
  readonly open: { readonly entryId: string; readonly calls: readonly ToolCallBlock[] } | null;
  /** What the model is concerned with, as the session stands, made valid for this model. */
  request(options?: RequestOptions): Promise<TurnRequest>;
  /** Refused: the run goes on without it. */
  say(message: MessageDraft): Promise<Said>;
  /** An entry that is no message, for people: a plan. */
  note(draft: EntryDraft): Promise<void>;
  /** Writes the input that was steered into this turn. Call it between steps, when every call is answered. `true`: there was input. */
  takeInput(): Promise<boolean>;
  /** Before each step and each tool: throws when the run is not ours any more, or ends. */
  check(): Promise<void>;
  /** After each answer; `budget_exceeded` ends the turn. */
  charge(usage: Usage): Promise<void>;
  /** The context is too large. `true`: a measure made the next request smaller. `false`: no measure is left. */
  makeRoom(
    size: { readonly tokens: number; readonly contextWindow: number },
    why: "threshold" | "overflow",
  ): Promise<boolean>;
  /** Frees the slot while a tool waits for other runs. Left out: the tool waits, and the slot is kept. */
  readonly whileWaiting?: ToolCallContext["whileWaiting"];
  /** Asks a person; `false`: no, or nobody answered in time. Aborted: the question is taken back, and the reason thrown. */
  approve(
    call: ToolCallBlock,
    signal?: AbortSignal,
  ): Promise<{ readonly approved: boolean; readonly note: string }>;
  readonly hooks: TurnHooks;
  /** The run's instances of the agent's state modules, by key. */
  readonly state: Readonly<Record<string, unknown>>;
  /** Removes paths of the machine from the text of a failed call. Left out: the model may see them. */
  readonly hidePaths?: (text: string) => string;
  emit(event: TurnEvent): void;
  /** Of a session of an ACP agent alone. */
  readonly acp?: AcpLink;
}

/** The session of an ACP agent that one of ours stands for. */
export interface AcpLink {
  /** Its name in the configuration. */
  readonly agent: string;
  /** What the agent calls it; `null`: it has none yet. */
  readonly agentSessionId: string | null;
  /** One of the agent's own, from before, that is to be gone on with. */
  readonly resumeSessionId: string | null;
  /** What it is to be set to; `null`: as the agent has it. */
  readonly model: string | null;
  readonly thinking: string | null;
  /** Of the last process of the agent that had it, here or elsewhere; `null`: there was none. */
  readonly processMark: string | null;
  /** `run`: its process ends with the run. */
  readonly mode: "run" | "session";
  /** Somebody had this run before, and was lost or stopped: what was prompted may have been done in part. */
  readonly wasBegun: boolean;
  /** Kept with the session, before anything is prompted. */
  remember(agentSessionId: string, processMark: string): Promise<void>;
  /** What was said in the session since the agent answered last, oldest first. */
  unanswered(): Promise<readonly UserMessage[]>;
  /** The bytes of a blob that a message refers to; `null`: not there. */
  blob(sha256: string): Promise<Uint8Array | null>;
}

/** What every request of a turn is built from, beside the messages. */
export interface RequestPlan extends Pick<Turn, "model" | "system" | "thinkingLevel" | "outputSchema"> {
  readonly tools: readonly Pick<Tool, "name" | "description" | "inputSchema">[];
  readonly limits: Pick<TurnLimits, "maxOutputTokens">;
}

export interface TurnLimits {
  /** Model calls of a turn; by default 50. */
  readonly maxSteps: number;
  /** A stream that is silent for so long is an error; by default 120,000. */
  readonly stallMs: number;
  /** By default 3. */
  readonly maxRetries: number;
  readonly maxOutputTokens?: number;
}

/** How summaries are asked for: with the same limits as any other request. */
export interface SummarizerOptions {
  readonly signal: AbortSignal;
  readonly limits: Pick<TurnLimits, "stallMs" | "maxRetries">;
  /** What each answer used. */
  onUsage(usage: Usage): void;
  onRetry?(event: Extract<TurnEvent, { type: "retry" }>): void;
}

export interface RequestOptions {
  /** This request, and every later one of the turn, goes out without the thinking that its provider sealed. */
  readonly isSealedThinkingRejected?: boolean;
}

export interface TurnRequest {
  readonly messages: readonly TranscriptMessage[];
  readonly context: SessionContext;
  readonly changes: readonly Change[];
  /** As estimated; over the threshold the loop asks for room first. */
  readonly tokens: number;
  readonly isOverThreshold: boolean;
}

export interface Said {
  /** The message itself; `null`: it was refused. */
  readonly entry: Entry | null;
  readonly refused: string | null;
  /** Every call of the answer was invalid and left out; a message tells the model which and why. */
  readonly hasOnlyInvalidCalls?: true;
}

/** The hooks of a turn, with the context of the run filled in. */
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
  /** A request goes out, or an answer is there: for telemetry. */
  | {
      readonly type: "step";
      readonly phase: "asked" | "answered";
      readonly step: number;
      readonly usage?: Usage;
      readonly finishReason?: string;
      /** It failed, and the turn with it. */
      readonly code?: string;
    };

/** A tool as a turn calls it: arguments are checked, and what it returns is text, blocks or JSON. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  /** A JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** `safe`: may be called again when it is not known whether the first call was done. */
  readonly replay: "safe" | "never";
  /** The groups that it is in: `group:sessions`. */
  readonly groups: readonly string[];
  /** Called once all other calls of its message are done: what those set off is there then. */
  readonly isLast?: boolean;
  /** The arguments of a call as the transcript keeps them; the call itself is made with all of them. Left out: as they are. */
  persisted?(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  needsApproval(args: Readonly<Record<string, unknown>>): boolean | Promise<boolean>;
  /** The arguments as the tool takes them, or what is wrong with them, with the path. */
  check(
    args: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly args: unknown } | { readonly problem: string }>;
  /** A throw is a failed result; the run goes on. */
  execute(args: unknown, call: ToolCallContext): Promise<ToolOutput>;
}

export interface ToolCallContext {
  readonly about: TurnAbout;
  readonly toolCallId: string;
  /** The entry of the message that made the call: ids of what a tool sets off derive from it. */
  readonly entryId: string;
  readonly signal: AbortSignal;
  /** State modules of the session, by key. */
  readonly state: Readonly<Record<string, unknown>>;
  /** The slot is free meanwhile: for tools that wait for somebody else. */
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

/** A model of the AI SDK (`LanguageModelV4`) by its shape, so that the types of this package do not need those of the AI SDK. */
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
