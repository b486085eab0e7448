import type { Api, ImageLimits, TranscriptPolicy } from "./contract.ts";

/** The provider and model that a transcript is for. */
export interface PolicyRequest {
  readonly provider: string;
  /** Defaults to the provider's own format. Unknown providers use OpenAI's chat completions. */
  readonly api?: string;
  readonly model: string;
  readonly overrides?: Partial<Omit<TranscriptPolicy, "provider" | "api" | "model">>;
}

type Rules = Omit<TranscriptPolicy, "provider" | "api" | "model">;

/** In pixels. Larger images are shrunk before they are sent. */
export const maxImageSide = 1200;
const mebibyte = 1024 * 1024;
const image = { maxSide: maxImageSide, maxBytes: 5 * mebibyte };
/** Anthropic's limit applies to the base64-encoded image, which is a third larger than the raw image. */
const anthropicBytes = Math.floor((image.maxBytes * 3) / 4);
const anthropicImages: ImageLimits = {
  ...image,
  maxBytes: anthropicBytes,
  maxCount: 100,
  maxTotalBytes: 20 * mebibyte,
};
const googleImages: ImageLimits = { ...image, gif: "none", maxCount: 500, maxTotalBytes: 13 * mebibyte };
const openaiImages: ImageLimits = { ...image, gif: "still", maxCount: 500, maxTotalBytes: 32 * mebibyte };
const mistralImages: ImageLimits = { ...image, gif: "still", maxCount: 8, maxTotalBytes: 32 * mebibyte };

const anthropic: Rules = {
  sanitizeMode: "full",
  toolCallIds: "strict",
  callsWithoutTools: "text",
  repairToolPairing: true,
  missingResults: "synthetic",
  thinking: "signed",
  foreignThinking: "text",
  firstTurn: "user",
  turns: "anthropic",
  toolResultImages: "inside",
  images: anthropicImages,
};

const openai: Rules = {
  sanitizeMode: "images-only",
  toolCallIds: "strict",
  callsWithoutTools: "native",
  repairToolPairing: true,
  missingResults: "drop",
  thinking: "none",
  foreignThinking: "text",
  firstTurn: "any",
  turns: "any",
  toolResultImages: "behind",
  images: openaiImages,
};

const rules: Readonly<Record<Api, Rules>> = {
  "anthropic-messages": anthropic,
  "google-generative-ai": {
    ...anthropic,
    callsWithoutTools: "native",
    thinking: "base64",
    turns: "gemini",
    toolResultImages: "behind",
    images: googleImages,
  },
  "openai-completions": openai,
  "openai-responses": { ...openai, toolCallIds: "kept", thinking: "items", toolResultImages: "inside" },
  "mistral-conversations": {
    ...openai,
    sanitizeMode: "full",
    toolCallIds: "strict9",
    thinking: "plain",
    turns: "mistral",
    images: mistralImages,
  },
};

const apiOfProvider: Readonly<Record<string, Api>> = {
  anthropic: "anthropic-messages",
  google: "google-generative-ai",
  "google-vertex": "google-generative-ai",
  openai: "openai-responses",
  mistral: "mistral-conversations",
};

/** The names that other programs use for the same formats. */
const sameApi: Readonly<Record<string, Api>> = {
  "bedrock-converse-stream": "anthropic-messages",
  "google-gemini-cli": "google-generative-ai",
  "google-vertex": "google-generative-ai",
  "azure-openai-responses": "openai-responses",
  "openai-codex-responses": "openai-responses",
  "openai-chat": "openai-completions",
};

/**
 * OpenAI-compatible providers that require the `reasoning_content` of earlier answers. Other providers might reject the
 * field.
 */
const reasoningProviders = /^(?:deepseek|moonshot|moonshotai|kimi)(?:[._-]|$)/i;

/**
 * Returns a provider's requirements for a transcript.
 *
 * @example
 * ```ts
 * import { resolveTranscriptPolicy } from "skein";
 * const policy = resolveTranscriptPolicy({ provider: "anthropic", model: "claude-sonnet-4-5" });
 * ```
 */
export function resolveTranscriptPolicy(request: PolicyRequest): TranscriptPolicy {
  const api = apiOf(request.provider, request.api);
  const wantsReasoning = api === "openai-completions" && reasoningProviders.test(request.provider);
  const given = Object.entries(request.overrides ?? {}).filter(([, value]) => value !== undefined);
  return {
    provider: request.provider,
    api,
    model: request.model,
    ...rules[api],
    ...(wantsReasoning ? { thinking: "plain" as const } : {}),
    ...Object.fromEntries(given),
  };
}

/** Returns the named wire format, or the provider's default if none is named. */
export function apiOf(provider: string, api?: string): Api {
  if (api === undefined) return own(apiOfProvider, provider) ?? "openai-completions";
  return Object.hasOwn(rules, api) ? (api as Api) : (own(sameApi, api) ?? "openai-completions");
}

function own(table: Readonly<Record<string, Api>>, name: string): Api | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
