/** What the twins of the providers agree on. A twin speaks one wire format and refuses what the real server refuses. */

/** The wire formats that there are twins of. */
export type TwinApi =
  | "anthropic-messages"
  | "google-generative-ai"
  | "openai-completions"
  | "openai-responses"
  | "mistral-conversations";

/** A request as it comes in, the body already parsed, names of headers in lower case. */
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
  /** Stable, ours: which rule was broken, as in `tool_result_without_call`. Not sent. */
  readonly rule: string;
  /** The body that the real server answers with. */
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a model has room for. */
export interface TwinLimits {
  /** Tokens, counted roughly; a longer request is refused as the real server does it. */
  readonly contextWindow: number;
}

/** What the twin is to say, whatever the wire format. */
export interface ScriptedReply {
  readonly content: readonly ScriptedBlock[];
  /** By default `toolUse` if there are calls, else `stop`. */
  readonly stopReason?: "stop" | "length" | "toolUse";
  /** By default counted roughly from the request and the content. */
  readonly usage?: ScriptedUsage;
}

/** A piece of what the twin is to say. */
export type ScriptedBlock =
  | { readonly type: "text"; readonly text: string }
  /** The twin signs it as the provider does, so that it comes back signed or is refused. */
  | { readonly type: "thinking"; readonly thinking: string; readonly redacted?: boolean }
  | {
      readonly type: "toolCall";
      readonly name: string;
      readonly arguments: Readonly<Record<string, unknown>>;
      /** By default made as the provider makes them. */
      readonly id?: string;
    };

/** What the twin is to say of its tokens, as each provider says it. */
export interface ScriptedUsage {
  /** What the cache had no part in. */
  readonly input: number;
  /** All that was said, thinking included. */
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  /** How much of the output was thinking. */
  readonly reasoning?: number;
}

/** An answer that is no plain reply: an error of the server, or a stream that goes wrong or comes in crumbs. */
export type ScriptedFault =
  | {
      readonly fault: "status";
      readonly status: number;
      readonly retryAfter?: string;
      readonly message?: string;
    }
  /** The stream of `reply` ends after so many events, the connection is cut. */
  | { readonly fault: "cut"; readonly reply: ScriptedReply; readonly afterEvents: number }
  /** So many events, then silence until the client leaves. */
  | { readonly fault: "stall"; readonly reply: ScriptedReply; readonly afterEvents: number }
  /** Bytes that are no event of this format, in the middle of a stream. */
  | { readonly fault: "garbage"; readonly reply: ScriptedReply; readonly afterEvents: number }
  /** The whole of `reply`, so many bytes at a time: characters and events come in pieces. */
  | { readonly fault: "slow"; readonly reply: ScriptedReply; readonly bytes: number };

/** One answer of a twin. */
export type Scripted = ScriptedReply | ScriptedFault;

/** One provider's rules and manner of speaking; pure. */
export interface WireFormat {
  readonly api: TwinApi;
  /** Whether this request is for this format at all: method and path. */
  readonly serves: (request: TwinRequest) => boolean;
  /** `null`: the provider would take it. */
  readonly check: (request: TwinRequest, limits: TwinLimits) => Refusal | null;
  /** Whether the client asked for a stream. */
  readonly streams: (request: TwinRequest) => boolean;
  /** The events of a streamed answer, each as the text that goes over the wire, blank line included. */
  readonly events: (reply: ScriptedReply, request: TwinRequest, newId: () => string) => readonly string[];
  /** The body of an answer that is not streamed. */
  readonly answer: (reply: ScriptedReply, request: TwinRequest, newId: () => string) => unknown;
  /** The body of an error of the server itself. */
  readonly errorBody: (status: number, message: string) => unknown;
}

/**
 * Signs what a model thought, so that a twin can tell its own from a forged or foreign one. The form is the provider's:
 * Anthropic and Google base64, Responses an opaque text.
 */
export interface Signatures {
  readonly sign: (api: TwinApi, model: string, thought: string) => string;
  readonly verify: (api: TwinApi, model: string, thought: string, signature: string) => boolean;
}
