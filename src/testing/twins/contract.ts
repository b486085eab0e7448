/** What the twins of the providers agree on. A twin speaks one wire format and refuses what the real server refuses. */

/**
 * The wire formats that there are twins of.
 *
 * @example
 * ```ts
 * import { startTwin, type TwinApi } from "skein/testing";
 * const apis: TwinApi[] = ["anthropic-messages", "google-generative-ai"];
 * const twins = await Promise.all(apis.map((api) => startTwin({ api })));
 * ```
 */
export type TwinApi =
  | "anthropic-messages"
  | "google-generative-ai"
  | "openai-completions"
  | "openai-responses"
  | "mistral-conversations";

/**
 * A request as it comes in, the body already parsed, names of headers in lower case.
 *
 * @example
 * ```ts
 * import { checkRequest, type TwinRequest } from "skein/testing";
 * const path = "/v1beta/models/gemini-2.5-flash:generateContent";
 * const body = { contents: [{ role: "user", parts: [{ text: "Where, and when?" }] }] };
 * const request: TwinRequest = { method: "POST", path, headers: { "x-goog-api-key": "any" }, body };
 * const isTaken = checkRequest("google-generative-ai", request) === null;
 * ```
 */
export interface TwinRequest {
  readonly method: string;
  /** With its query, as in `/v1/messages`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: unknown;
}

/**
 * A refusal in the provider's own shape.
 *
 * @example
 * ```ts
 * import type { Refusal } from "skein/testing";
 * const inShort = ({ status, rule }: Refusal) => `${status} ${rule}`;
 * ```
 */
export interface Refusal {
  readonly status: number;
  /** Stable, ours: which rule was broken, as in `tool_result_without_call`. Not sent. */
  readonly rule: string;
  /** The body that the real server answers with. */
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * What a model has room for.
 *
 * @example
 * ```ts
 * import { checkRequest, type TwinLimits, type TwinRequest } from "skein/testing";
 * const small: TwinLimits = { contextWindow: 8000 };
 * const fits = (request: TwinRequest) => checkRequest("anthropic-messages", request, small) === null;
 * ```
 */
export interface TwinLimits {
  /** Tokens, counted roughly; a longer request is refused as the real server does it. */
  readonly contextWindow: number;
}

/**
 * What the twin is to say, whatever the wire format.
 *
 * @example
 * ```ts
 * import type { ScriptedReply } from "skein/testing";
 * const reply: ScriptedReply = {
 *   content: [
 *     { type: "thinking", thinking: "The gardens first." },
 *     { type: "toolCall", name: "find", arguments: { what: "gardens" } },
 *   ],
 *   usage: { input: 1200, output: 40, cacheRead: 1000 },
 * };
 * ```
 */
export interface ScriptedReply {
  readonly content: readonly ScriptedBlock[];
  /** By default `toolUse` if there are calls, else `stop`. */
  readonly stopReason?: "stop" | "length" | "toolUse";
  /** By default counted roughly from the request and the content. */
  readonly usage?: ScriptedUsage;
}

/**
 * A piece of what the twin is to say.
 *
 * @example
 * ```ts
 * import type { ScriptedBlock } from "skein/testing";
 * const calls: ScriptedBlock[] = ["gardens", "food"].map((what) => ({
 *   type: "toolCall",
 *   name: "find",
 *   arguments: { what },
 * }));
 * ```
 */
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

/**
 * What the twin is to say of its tokens, as each provider says it.
 *
 * @example
 * ```ts
 * import type { ScriptedUsage } from "skein/testing";
 * const usage: ScriptedUsage = { input: 200, cacheRead: 1000, output: 60, reasoning: 20 };
 * ```
 */
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

/**
 * An answer that is no plain reply: an error of the server, or a stream that goes wrong or comes in crumbs.
 *
 * @example
 * ```ts
 * import { startTwin, type ScriptedFault } from "skein/testing";
 * const busy: ScriptedFault = { fault: "status", status: 529, retryAfter: "1" };
 * const twin = await startTwin({ api: "anthropic-messages", replies: [busy] });
 * ```
 */
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

/**
 * One answer of a twin.
 *
 * @example
 * ```ts
 * import type { Scripted } from "skein/testing";
 * const done = { content: [{ type: "text", text: "Done." }] } as const;
 * const script: Scripted[] = [{ fault: "cut", reply: done, afterEvents: 3 }, done];
 * ```
 */
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
 *
 * @example
 * ```ts
 * import { signatures, type Signatures } from "skein/testing";
 * const { verify }: Signatures = signatures;
 * const isOwn = verify("google-generative-ai", "gemini-3-pro", "", "c2tlaW4=");
 * ```
 */
export interface Signatures {
  readonly sign: (api: TwinApi, model: string, thought: string) => string;
  readonly verify: (api: TwinApi, model: string, thought: string, signature: string) => boolean;
}
