import { SkeinError } from "../../core/errors.ts";
import { anthropic } from "../twins/anthropic/format.ts";
import type { TwinApi, TwinLimits, WireFormat } from "../twins/contract.ts";
import { google } from "../twins/google/format.ts";
import { mistral } from "../twins/mistral/format.ts";
import { openaiChat } from "../twins/openai-chat/format.ts";
import { openaiResponses } from "../twins/openai-responses/format.ts";

const formats: Readonly<Record<TwinApi, WireFormat>> = {
  "anthropic-messages": anthropic,
  "google-generative-ai": google,
  "openai-completions": openaiChat,
  "openai-responses": openaiResponses,
  "mistral-conversations": mistral,
};

/** Where the paths of a format begin, as the AI SDK wants it in a `baseURL`. */
export const basePaths: Readonly<Record<TwinApi, string>> = {
  "anthropic-messages": "/v1",
  "google-generative-ai": "/v1beta",
  "openai-completions": "/v1",
  "openai-responses": "/v1",
  "mistral-conversations": "/v1",
};

/** The context windows of the models that most people use. */
const windows: Readonly<Record<TwinApi, number>> = {
  "anthropic-messages": 200_000,
  "google-generative-ai": 1_048_576,
  "openai-completions": 128_000,
  "openai-responses": 400_000,
  "mistral-conversations": 131_072,
};

export function formatOf(api: TwinApi): WireFormat {
  if (Object.hasOwn(formats, api)) return formats[api];
  throw new SkeinError("invalid_arguments", {
    problem: `There is no twin of "${api}"`,
    advice: `Use one of ${Object.keys(formats).join(", ")}`,
  });
}

export function limitsOf(api: TwinApi, given: Partial<TwinLimits> = {}): TwinLimits {
  return { contextWindow: given.contextWindow ?? windows[api] };
}
