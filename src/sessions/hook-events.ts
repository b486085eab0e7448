import type { ContextMessage } from "../core/context.ts";
import type { AssistantMessage, Message, ToolResultMessage } from "../core/messages.ts";
import type { TranscriptMessage } from "../transcript/contract.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/** A hook that can return an answer. `outcome` combines all answers. */
interface Asked<Event, Answer, Outcome> {
  readonly event: Event & { readonly ctx: RuntimeContext };
  readonly answer: Answer;
  readonly outcome: Outcome;
}

/** A hook that is only notified. */
interface Notified<Event> {
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

/** Every hook, with the event it receives and the answer it can return. */
export interface Hooks {
  /** Before a run's first request. `prependContext` is sent before the prompt and stored as a separate entry. */
  readonly before_agent_start: Asked<
    { readonly prompt: string; readonly messages: readonly ContextMessage[] },
    { readonly prependContext?: string },
    { readonly prependContext: string | null }
  >;
  /** Before a run's system prompt is final. */
  readonly before_prompt_build: Asked<
    {
      readonly system: string | null;
      readonly prompt: string;
      readonly messages: readonly ContextMessage[];
    },
    { readonly system?: string; readonly prependContext?: string },
    { readonly system: string | null; readonly prependContext: string | null }
  >;
  /** For each request, when it is sent. */
  readonly llm_input: Notified<
    Model & {
      readonly system: string | null;
      readonly messages: readonly TranscriptMessage[];
      readonly tools: readonly string[];
    }
  >;
  /** For each answer, before it is written. */
  readonly llm_output: Notified<Model & { readonly message: AssistantMessage }>;
  /** At the end of every run. */
  readonly agent_end: Notified<{
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
  readonly after_tool_call: Notified<
    ToolCall & { readonly result: ToolResultMessage; readonly durationMs: number }
  >;
  /** Before a tool's result is written. */
  readonly tool_result_persist: Replaced<ToolResultMessage>;
  /** Before any message is written. */
  readonly before_message_write: Replaced<Message>;
  /**
   * Before the entries older than the first kept entry are summarized. `summary` is the summary that an earlier hook
   * supplied. If `isCut` is `true`, `messages` lacks the oldest part, because it was too large to read in one pass.
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
  readonly after_compaction: Notified<{
    readonly entryId: string;
    readonly summary: string;
    readonly firstKeptEntryId: string | null;
    readonly tokensBefore: number;
    readonly tokensAfter: number;
  }>;
  /** When a run opens a session. `isNew` is `true` the first time. */
  readonly session_start: Notified<Session & { readonly isNew: boolean }>;
  readonly session_end: Notified<Session & { readonly reason: "reset" | "removed" }>;
  /** Before a key moves to a new session. `why` is one sentence. */
  readonly before_reset: Asked<
    Session & { readonly why: string },
    { readonly cancel: string },
    { readonly cancel: string | null }
  >;
  readonly subagent_spawning: Asked<Child, { readonly block: string }, { readonly block: string | null }>;
  readonly subagent_spawned: Notified<Child & { readonly childSessionKey: string; readonly runId: string }>;
  readonly subagent_ended: Notified<
    Child & {
      readonly childSessionKey: string;
      readonly runId: string;
      readonly outcome: RunOutcome;
      readonly result: string | null;
    }
  >;
}

/** The name of a hook, for `HookRegistry.on`. */
export type HookName = keyof Hooks;

/** The hooks that can return an answer. */
export type AskedHook = {
  [N in HookName]: Hooks[N] extends { readonly outcome: unknown } ? N : never;
}[HookName];
export type NotifiedHook = Exclude<HookName, AskedHook>;

/** A hook function. Returning `undefined` means no answer. */
export type Hook<N extends HookName> = (
  event: Hooks[N]["event"],
) => Hooks[N]["answer"] | undefined | Promise<Hooks[N]["answer"] | undefined>;
