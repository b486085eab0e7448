import type { ContextMessage } from "../core/context.ts";
import type { AssistantMessage, Message, ToolResultMessage } from "../core/messages.ts";
import type { TranscriptMessage } from "../transcript/contract.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/** What hooks are given, and what they may say to it. */

/** A hook that is asked: what it may answer, and what the answers of all come to. */
interface Asked<Event, Answer, Outcome> {
  readonly event: Event & { readonly ctx: RuntimeContext };
  readonly answer: Answer;
  readonly outcome: Outcome;
}

/** A hook that is told, and changes nothing. */
interface Told<Event> {
  readonly event: Event & { readonly ctx: RuntimeContext };
  readonly answer: undefined;
}

type Arguments = Readonly<Record<string, unknown>>;
type RunOutcome = "ok" | "error" | "timeout" | "aborted";
interface Model {
  readonly provider: string;
  readonly api: string;
  readonly model: string;
}
interface ToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: Arguments;
}
interface Session {
  readonly sessionId: string;
  readonly key: string;
}
interface Child {
  readonly agentId: string;
  readonly runtime: "subagent" | "acp";
  readonly task: string;
  readonly label: string | null;
}
type Replaced<M> = Asked<
  { readonly message: M },
  { readonly replace: M } | { readonly refuse: string },
  { readonly message: M; readonly refuse: string | null }
>;

/** Every hook by its name: the event that it gets, and what it may answer. */
export interface Hooks {
  /** Before a run's first request. What it prepends goes out before the prompt, and is kept as an entry of its own. */
  readonly before_agent_start: Asked<
    { readonly prompt: string; readonly messages: readonly ContextMessage[] },
    { readonly prependContext?: string },
    { readonly prependContext: string | null }
  >;
  /** Before the system prompt of a run is fixed. */
  readonly before_prompt_build: Asked<
    {
      readonly system: string | null;
      readonly prompt: string;
      readonly messages: readonly ContextMessage[];
    },
    { readonly system?: string; readonly prependContext?: string },
    { readonly system: string | null; readonly prependContext: string | null }
  >;
  /** Each request, as it goes out. */
  readonly llm_input: Told<
    Model & {
      readonly system: string | null;
      readonly messages: readonly TranscriptMessage[];
      readonly tools: readonly string[];
    }
  >;
  /** Each answer, before it is written. */
  readonly llm_output: Told<Model & { readonly message: AssistantMessage }>;
  /** The end of a run, however it ended. */
  readonly agent_end: Told<{
    readonly outcome: RunOutcome;
    readonly error: string | null;
    readonly messages: readonly ContextMessage[];
    readonly durationMs: number;
  }>;
  /** Before a tool is called. */
  readonly before_tool_call: Asked<
    ToolCall,
    { readonly block: string } | { readonly replace: Arguments },
    { readonly arguments: Arguments; readonly block: string | null }
  >;
  readonly after_tool_call: Told<
    ToolCall & { readonly result: ToolResultMessage; readonly durationMs: number }
  >;
  /** Before a tool's result is written. */
  readonly tool_result_persist: Replaced<ToolResultMessage>;
  /** Before any message is written. */
  readonly before_message_write: Replaced<Message>;
  /**
   * Before what is older than the first kept entry is summarized; `summary` is what a hook before made of it. With
   * `isCut` there is more of it than `messages`, before them: what was too much to be read at once.
   */
  readonly before_compaction: Asked<
    {
      readonly messages: readonly ContextMessage[];
      readonly isCut: boolean;
      readonly firstKeptEntryId: string | null;
      readonly tokensBefore: number;
      readonly previousSummary: string | null;
      readonly summary: string | null;
    },
    { readonly cancel: string } | { readonly summary: string },
    { readonly cancel: string | null; readonly summary: string | null }
  >;
  readonly after_compaction: Told<{
    readonly entryId: string;
    readonly summary: string;
    readonly firstKeptEntryId: string | null;
    readonly tokensBefore: number;
    readonly tokensAfter: number;
  }>;
  /** A session is opened for a run; `isNew`: for the first time. */
  readonly session_start: Told<Session & { readonly isNew: boolean }>;
  readonly session_end: Told<Session & { readonly reason: "reset" | "removed" }>;
  /** Before a key moves on to a new session; `why` is one sentence. */
  readonly before_reset: Asked<
    Session & { readonly why: string },
    { readonly cancel: string },
    { readonly cancel: string | null }
  >;
  readonly subagent_spawning: Asked<Child, { readonly block: string }, { readonly block: string | null }>;
  readonly subagent_spawned: Told<Child & { readonly childSessionKey: string; readonly runId: string }>;
  readonly subagent_ended: Told<
    Child & {
      readonly childSessionKey: string;
      readonly runId: string;
      readonly outcome: RunOutcome;
      readonly result: string | null;
    }
  >;
}

/** The name of a hook. */
export type HookName = keyof Hooks;

/** Hooks whose answers count. */
export type AskedHook = {
  [N in HookName]: Hooks[N] extends { readonly outcome: unknown } ? N : never;
}[HookName];
export type ToldHook = Exclude<HookName, AskedHook>;

/** What is called; it may answer, or not. */
export type Hook<N extends HookName> = (
  event: Hooks[N]["event"],
) => Hooks[N]["answer"] | undefined | Promise<Hooks[N]["answer"] | undefined>;
