import type {
  EmbeddingModelV4,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  SharedV4Warning,
} from "@ai-sdk/provider";
import { rehearsalModel } from "../../config/default-model.ts";
import type { ModelSettings } from "../../config/model-settings.ts";
import { modelSettings, providerType } from "../../config/model-settings.ts";
import type { Config } from "../../config/sections/all.ts";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Api, Change } from "../../transcript/contract.ts";
import type { ModelRef } from "../../transcript/model-table.ts";
import { apiOf } from "../../transcript/policy.ts";

/** A provider's AI SDK package. */
export type ModelType = "anthropic" | "openai" | "google" | "mistral" | "openai-compatible";

export interface OpenModelOptions {
  /** Defaults to the environment variable that the package uses, read on the first request. */
  readonly apiKey?: string;
  readonly baseUrl?: string;
  readonly headers?: Record<string, string>;
  readonly fetch?: typeof globalThis.fetch;
  /**
   * Determined by the wire format if one is set, otherwise by the provider's name. An unknown provider is treated as
   * OpenAI-compatible.
   */
  readonly type?: ModelType;
}

const known: readonly string[] = ["anthropic", "openai", "google", "mistral"] satisfies ModelType[];

export interface ModelPackage {
  readonly package: ModelType;
  readonly api: Api;
}

/**
 * Returns the package and wire format for a model. Uses the explicit wire format if there is one, otherwise the type's,
 * otherwise the provider's. The wire format also determines the package, because the transcript is built for that
 * format.
 */
export function packageFor(
  { provider, api: named }: Omit<ModelRef, "model">,
  type?: ModelType,
): ModelPackage {
  const api = named === undefined && type !== undefined ? apiOf(type) : apiOf(provider, named);
  if (api === "openai-completions" && (type ?? provider) === "openai") return { package: "openai", api };
  return { package: packages[api], api };
}

const packages: Readonly<Record<Api, ModelType>> = {
  "anthropic-messages": "anthropic",
  "google-generative-ai": "google",
  "mistral-conversations": "mistral",
  "openai-responses": "openai",
  "openai-completions": "openai-compatible",
};

/** Opens a model. Loads only its provider's package. */
export async function openModel(ref: ModelRef, options: OpenModelOptions = {}): Promise<LanguageModelV4> {
  const { model } = ref;
  const opened = await openProvider(ref, options);
  if (opened.package !== "openai") return opened.provider(model);
  return opened.api === "openai-completions" ? opened.provider.chat(model) : opened.provider.responses(model);
}

/** Opens an embedding model. */
export async function openEmbeddingModel(
  ref: ModelRef,
  options: OpenModelOptions = {},
): Promise<EmbeddingModelV4> {
  const { provider, model } = ref;
  const opened = await openProvider(ref, options);
  if (opened.package !== "anthropic") return opened.provider.embeddingModel(model);
  const problem = "Anthropic has no embedding models";
  throw new SkeinError("model_not_found", { model: `${provider}/${model}`, problem });
}

async function openProvider(ref: ModelRef, options: OpenModelOptions) {
  const { provider } = ref;
  const { apiKey, baseUrl: baseURL, headers, fetch, type } = options;
  const isKnown = known.includes(type ?? provider);
  // A key for another server must never be sent to the company that defined the wire format.
  if (!isKnown && baseURL === undefined) throw noBaseUrl(provider);
  const settings = present({ apiKey, baseURL, headers, fetch: limitResponses(fetch) });
  const { package: name, api } = packageFor(ref, type);
  switch (name) {
    case "anthropic":
      return { package: name, provider: (await import("@ai-sdk/anthropic")).createAnthropic(settings) };
    case "google":
      return { package: name, provider: (await import("@ai-sdk/google")).createGoogle(settings) };
    case "mistral":
      return { package: name, provider: (await import("@ai-sdk/mistral")).createMistral(settings) };
    case "openai":
      return { package: name, api, provider: (await import("@ai-sdk/openai")).createOpenAI(settings) };
    case "openai-compatible": {
      if (baseURL === undefined) throw noBaseUrl(provider);
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const compatible = { ...settings, baseURL, name: provider, includeUsage: true };
      return { package: name, provider: createOpenAICompatible(compatible) };
    }
  }
}

/** Returns a model's wire format: the given or configured one, otherwise its provider's default. */
export function modelApi(ref: ModelRef, { api, type }: Pick<ModelSettings, "api" | "type">): Api {
  const isUnknownServer = type === "openai-compatible" && providerType(ref.provider) === type;
  return apiOf(isUnknownServer ? ref.provider : type, ref.api ?? api ?? undefined);
}

/** Throws `invalid_arguments` for an unknown provider without a base URL, which is usually a typo. */
export function checkReachable(
  { provider, model }: Pick<ModelRef, "provider" | "model">,
  models: Config["models"],
  baseUrl?: string,
): void {
  if (`${provider}/${model}` === rehearsalModel) return;
  const settings = modelSettings(models, provider, model);
  if (settings.type !== "openai-compatible" || settings.baseUrl !== null || baseUrl !== undefined) return;
  throw noBaseUrl(
    provider,
    `: baseUrl (on the command line: --base-url <url>), or models.providers.${provider}.baseUrl`,
  );
}

export function noBaseUrl(
  provider: string,
  howToGive = `: models.providers.${provider}.baseUrl`,
): SkeinError {
  return new SkeinError("invalid_arguments", {
    problem: `Provider "${provider}" is unknown, and no base URL was given for it`,
    advice: `Known providers are ${known.join(", ")}. Any other provider needs the base URL of its server${howToGive}`,
  });
}

/** An HTTP request as it would be sent. */
export interface Wire {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** Parts that the provider's package omitted or changed. */
  readonly warnings: readonly Change[];
}

/** Never contacted, because the request is captured instead of sent. */
const placeholder = { apiKey: "none", baseUrl: "http://127.0.0.1:9/v1" };

/** Returns the body of a request without sending it. */
export async function wireBody(options: LanguageModelV4CallOptions, ref: ModelRef): Promise<unknown> {
  return (await captureWire(options, ref)).body;
}

/** Captures the HTTP request that the provider's package would send. */
export async function captureWire(
  options: LanguageModelV4CallOptions,
  ref: ModelRef,
  type?: ModelType,
): Promise<Wire> {
  const sent: Omit<Wire, "warnings">[] = [];
  const capture: typeof globalThis.fetch = async (url, init) => {
    const headers = Object.fromEntries(new Headers(init?.headers).entries());
    sent.push({ url: String(url), headers, body: JSON.parse(String(init?.body)) });
    return new Response("", { headers: { "content-type": "text/event-stream" } });
  };
  const model = await openModel(ref, { ...placeholder, fetch: capture, ...present({ type }) });
  const warnings: Change[] = [];
  const { stream } = await model.doStream(options);
  for await (const part of stream) {
    if (part.type === "stream-start") warnings.push(...part.warnings.map(changeOf));
  }
  const [request] = sent;
  if (request === undefined) throw new SkeinError("internal", { problem: "no request was made" });
  return { ...request, warnings };
}

function changeOf(warning: SharedV4Warning): Change {
  const note =
    "message" in warning ? warning.message : (warning.details ?? `${warning.feature} is not sent.`);
  return { step: "wireBody", kind: `${warning.type}_warning`, note };
}

/** The maximum size of an answer: text, thinking and call arguments combined. */
export const maxAnswerBytes = 32 * 1024 * 1024;
/** The maximum size of a response on the wire, where the frame around each chunk is much larger than the chunk. */
const maxResponseBytes = 256 * 1024 * 1024;

/** Thrown for a model that never ends its answer, before the process runs out of memory. */
export class AnswerTooLong extends Error {
  override readonly name = "AnswerTooLong";

  constructor(what: "answer" | "response", maxBytes: number) {
    super(`the ${what} exceeded the maximum of ${maxBytes / 1024 / 1024} MB and was cut off`);
  }
}

/** Wraps `fetch` so that an oversized response fails with `AnswerTooLong` instead of growing without limit. */
export function limitResponses(fetch: typeof globalThis.fetch | undefined): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await (fetch ?? globalThis.fetch)(input, init);
    if (response.body === null) return response;
    const body = response.body.pipeThrough(responseLimit(response.ok));
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };
}

/**
 * Limits the whole response and each event in a stream, because parsers keep an event in memory until the blank line
 * that ends it.
 */
function responseLimit(isStream: boolean): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let total = 0;
  let event = 0;
  let isLineEmpty = true;
  return new TransformStream({
    transform(chunk, controller) {
      total += chunk.length;
      if (total > maxResponseBytes) throw new AnswerTooLong("response", maxResponseBytes);
      for (let at = 0; at < chunk.length; at++) {
        event += 1;
        const byte = chunk[at];
        if (byte === carriageReturn) continue;
        if (byte === lineFeed && isLineEmpty && isStream) event = 0;
        isLineEmpty = byte === lineFeed;
      }
      if (event > maxAnswerBytes) throw new AnswerTooLong("answer", maxAnswerBytes);
      controller.enqueue(chunk);
    },
  });
}

const carriageReturn = 13;
const lineFeed = 10;
