/** The types for the provider twins. A twin implements one wire format and rejects what the real server rejects. */

/** The wire formats that have a twin. */
export type TwinApi =
  | "anthropic-messages"
  | "google-generative-ai"
  | "openai-completions"
  | "openai-responses"
  | "mistral-conversations";

/** A request with its body parsed and its header names in lowercase. */
export interface TwinRequest {
  readonly method: string;
  /** The path with its query, as in `/v1/messages`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: unknown;
}

/** An error response in the provider's format. */
export interface Refusal {
  readonly status: number;
  /** Skein's stable name for the violated rule, such as `tool_result_without_call`. It is not sent. */
  readonly rule: string;
  /** The body that the real server responds with. */
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The limits of a model. */
export interface TwinLimits {
  /** In estimated tokens. A longer request is rejected with the provider's own error. */
  readonly contextWindow: number;
}

/** One reply from a twin, independent of the wire format. */
export interface ScriptedReply {
  readonly content: readonly ScriptedBlock[];
  /** Defaults to `toolUse` if there are calls, otherwise `stop`. */
  readonly stopReason?: "stop" | "length" | "toolUse";
  /** Defaults to an estimate based on the request and the content. */
  readonly usage?: ScriptedUsage;
}

/** One block in a reply. */
export type ScriptedBlock =
  | { readonly type: "text"; readonly text: string }
  /** The twin signs the thinking as the provider does, and rejects it if it is sent back unsigned or modified. */
  | { readonly type: "thinking"; readonly thinking: string; readonly redacted?: boolean }
  | {
      readonly type: "toolCall";
      readonly name: string;
      readonly arguments: Readonly<Record<string, unknown>>;
      /** Generated in the provider's format by default. */
      readonly id?: string;
    };

/** The token counts for a reply, which the twin reports in the provider's fields. */
export interface ScriptedUsage {
  /** Excludes tokens that were read from the cache or written to it. */
  readonly input: number;
  /** Includes the reasoning. */
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  /** The part of the output that is thinking. */
  readonly reasoning?: number;
}

/** A faulty reply: a server error, or a stream that breaks, stalls or arrives in small chunks. */
export type ScriptedFault =
  | {
      readonly fault: "status";
      readonly status: number;
      readonly retryAfter?: string;
      readonly message?: string;
    }
  /** Closes the connection after `afterEvents` events from `reply`. */
  | { readonly fault: "cut"; readonly reply: ScriptedReply; readonly afterEvents: number }
  /** After `afterEvents` events, sends nothing until the client disconnects. */
  | { readonly fault: "stall"; readonly reply: ScriptedReply; readonly afterEvents: number }
  /** Sends invalid bytes after `afterEvents` events, followed by the rest of the reply. */
  | { readonly fault: "garbage"; readonly reply: ScriptedReply; readonly afterEvents: number }
  /** Sends all of `reply` in chunks of `bytes` bytes, which split characters and events. */
  | { readonly fault: "slow"; readonly reply: ScriptedReply; readonly bytes: number };

/** One response from a twin. */
export type Scripted = ScriptedReply | ScriptedFault;

/** The rules and the reply encoding for one provider API. */
export interface WireFormat {
  readonly api: TwinApi;
  /** The prefix of the API's paths, as the AI SDK expects it in a `baseURL`. */
  readonly basePath: string;
  /** The context window of the provider's usual models, in tokens. */
  readonly contextWindow: number;
  /** Whether the method and path belong to this API. */
  readonly serves: (request: TwinRequest) => boolean;
  /** Returns `null` if the provider would accept the request. */
  readonly check: (request: TwinRequest, limits: TwinLimits) => Refusal | null;
  /** Whether the client requested a stream. */
  readonly streams: (request: TwinRequest) => boolean;
  /** Returns the events for a streamed answer, each with its blank line. */
  readonly events: (reply: ScriptedReply, request: TwinRequest, newId: () => string) => readonly string[];
  /** Returns the body for an answer that is not streamed. */
  readonly answer: (reply: ScriptedReply, request: TwinRequest, newId: () => string) => unknown;
  /** Returns the body for a server error. */
  readonly errorBody: (status: number, message: string) => unknown;
}

/** Signs thinking in the provider's format. Twins accept only these signatures. */
export interface Signatures {
  readonly sign: (api: TwinApi, model: string, thought: string) => string;
  readonly verify: (api: TwinApi, model: string, thought: string, signature: string) => boolean;
}
