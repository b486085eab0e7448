/** The types of the provider twins. A twin speaks one wire format and refuses what the real server refuses. */

/** The wire formats that have a twin. */
export type TwinApi =
  | "anthropic-messages"
  | "google-generative-ai"
  | "openai-completions"
  | "openai-responses"
  | "mistral-conversations";

/** A request with its body parsed and its header names in lower case. */
export interface TwinRequest {
  readonly method: string;
  /** With its query, as in `/v1/messages`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: unknown;
}

/** A refusal in the provider's own shape. */
export interface Refusal {
  readonly status: number;
  /** A stable name of ours for the broken rule, such as `tool_result_without_call`. It is not sent. */
  readonly rule: string;
  /** The body that the real server answers with. */
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The limits of a model. */
export interface TwinLimits {
  /** In tokens, counted roughly. A longer request gets the provider's own refusal. */
  readonly contextWindow: number;
}

/** One reply of a twin, independent of the wire format. */
export interface ScriptedReply {
  readonly content: readonly ScriptedBlock[];
  /** Default: `toolUse` if there are calls, else `stop`. */
  readonly stopReason?: "stop" | "length" | "toolUse";
  /** Default: counted roughly from the request and the content. */
  readonly usage?: ScriptedUsage;
}

/** One block of a reply. */
export type ScriptedBlock =
  | { readonly type: "text"; readonly text: string }
  /** The twin signs it as the provider does, and refuses it if it comes back unsigned or changed. */
  | { readonly type: "thinking"; readonly thinking: string; readonly redacted?: boolean }
  | {
      readonly type: "toolCall";
      readonly name: string;
      readonly arguments: Readonly<Record<string, unknown>>;
      /** Default: generated in the provider's form. */
      readonly id?: string;
    };

/** The token counts of a reply, which the twin reports in the provider's fields. */
export interface ScriptedUsage {
  /** Without what was read from the cache or written to it. */
  readonly input: number;
  /** With the reasoning. */
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  /** The part of the output that was thinking. */
  readonly reasoning?: number;
}

/** A reply that fails: a server error, or a stream that breaks, stalls or arrives in small chunks. */
export type ScriptedFault =
  | {
      readonly fault: "status";
      readonly status: number;
      readonly retryAfter?: string;
      readonly message?: string;
    }
  /** Closes the connection after `afterEvents` events of `reply`. */
  | { readonly fault: "cut"; readonly reply: ScriptedReply; readonly afterEvents: number }
  /** Sends nothing after `afterEvents` events until the client disconnects. */
  | { readonly fault: "stall"; readonly reply: ScriptedReply; readonly afterEvents: number }
  /** Sends invalid bytes after `afterEvents` events, then the rest. */
  | { readonly fault: "garbage"; readonly reply: ScriptedReply; readonly afterEvents: number }
  /** Sends all of `reply` in chunks of `bytes` bytes, which split characters and events. */
  | { readonly fault: "slow"; readonly reply: ScriptedReply; readonly bytes: number };

/** One answer of a twin. */
export type Scripted = ScriptedReply | ScriptedFault;

/** The rules and the reply encoding of one provider API. */
export interface WireFormat {
  readonly api: TwinApi;
  /** Where its paths begin, as the AI SDK expects it in a `baseURL`. */
  readonly basePath: string;
  /** The context window of the provider's usual models, in tokens. */
  readonly contextWindow: number;
  /** Whether method and path belong to this API. */
  readonly serves: (request: TwinRequest) => boolean;
  /** `null`: the provider would accept it. */
  readonly check: (request: TwinRequest, limits: TwinLimits) => Refusal | null;
  /** Whether the client asked for a stream. */
  readonly streams: (request: TwinRequest) => boolean;
  /** The events of a streamed answer, each with its blank line. */
  readonly events: (reply: ScriptedReply, request: TwinRequest, newId: () => string) => readonly string[];
  /** The body of an answer that is not streamed. */
  readonly answer: (reply: ScriptedReply, request: TwinRequest, newId: () => string) => unknown;
  /** The body of a server error. */
  readonly errorBody: (status: number, message: string) => unknown;
}

/** Signs thinking in the provider's form, so that a twin recognizes its own and refuses any other. */
export interface Signatures {
  readonly sign: (api: TwinApi, model: string, thought: string) => string;
  readonly verify: (api: TwinApi, model: string, thought: string, signature: string) => boolean;
}
