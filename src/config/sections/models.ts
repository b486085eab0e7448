import type { Api, TranscriptPolicy } from "../../transcript/contract.ts";
import { choice, flag, httpAddress, numberBetween, optional, text, wholeNumber } from "../settings/kinds.ts";
import type { Setting, ValueKind } from "../settings/setting.ts";
import { group, table } from "../settings/setting.ts";
import { anyName, headers, keysLike } from "./tables.ts";

/** The parts of a transcript policy that a model's settings can override. `vision` controls images. */
export type PolicySettings = Omit<TranscriptPolicy, "provider" | "api" | "model" | "images">;

const override = <T>(about: string, kind: ValueKind<T>) =>
  optional(`${about}. Defaults to the wire format's rule.`, kind, "the wire format's rule");

const fields: { readonly [Field in keyof PolicySettings]: Setting<PolicySettings[Field] | null> } = {
  sanitizeMode: override(
    "Whether to sanitize the whole transcript or only its images",
    choice("full", "images-only"),
  ),
  toolCallIds: override("Which tool call IDs the model accepts", choice("strict", "strict9", "kept")),
  callsWithoutTools: override(
    "How to send earlier tool calls in a request without tools",
    choice("native", "text"),
  ),
  repairToolPairing: override("Whether to repair the pairing of tool calls and results", flag),
  missingResults: override("What to send for a tool call without a result", choice("synthetic", "drop")),
  thinking: override(
    "The format in which the model's own thinking is sent back",
    choice("signed", "base64", "items", "plain", "none"),
  ),
  foreignThinking: override("How to send another model's thinking", choice("text", "drop")),
  firstTurn: override("Whose turn must come first", choice("user", "any")),
  turns: override(
    "Which provider's rules for the order of turns apply",
    choice("anthropic", "gemini", "mistral", "any"),
  ),
  toolResultImages: override("Where to send images from a tool result", choice("inside", "behind")),
};

/** For servers that deviate from the wire format that they claim to implement. */
export const policy = group("Transcript rules that differ from the wire format's rules.", fields);

export type ProviderType = "openai-compatible" | "anthropic" | "openai" | "google" | "mistral";

const type = optional(
  "The provider's API. By default, the provider's name determines it; an unknown name means `openai-compatible`.",
  choice<ProviderType>("openai-compatible", "anthropic", "openai", "google", "mistral"),
  "the type that the name implies",
);

const apiKey: Setting<string | null> = {
  ...optional(
    "The API key, preferably a variable. Defaults to the provider's usual environment variable.",
    text,
    "the provider's usual environment variable",
  ),
  secret: true,
};

const tokens = (about: string) => optional(about, wholeNumber(1), "the built-in value");
const dollars = (what: string) =>
  optional(
    `Price in dollars per million ${what}. Defaults to the built-in price.`,
    numberBetween(0, 1_000_000),
    "the built-in price",
  );
const price = group("The model's prices.", {
  input: dollars("input tokens"),
  output: dollars("output tokens"),
  cacheRead: dollars("tokens read from the prompt cache"),
  cacheWrite: dollars("tokens written to the prompt cache"),
});
/** Smaller windows cannot be compacted. */
const minContextWindow = 2000;
const model = group("A model that is not built in, or whose properties differ from the built-in values.", {
  contextWindow: optional(
    "The model's context window in tokens, at least 2,000. Defaults to the built-in value.",
    wholeNumber(minContextWindow),
    "the built-in value",
  ),
  maxOutput: tokens("Maximum number of output tokens. Defaults to the built-in value."),
  vision: optional(
    "Whether the model accepts images. Defaults to the built-in value.",
    flag,
    "the built-in value",
  ),
  price,
  policy,
});
const models = table(
  "Models, by the names that the provider uses.",
  anyName("<model>", "a model name"),
  model,
);

const provider = group("A model provider.", {
  type,
  api: optional(
    "The wire format. Defaults to the provider's usual wire format.",
    choice<Api>(
      "anthropic-messages",
      "google-generative-ai",
      "openai-completions",
      "openai-responses",
      "mistral-conversations",
    ),
    "the provider's usual wire format",
  ),
  apiKey,
  baseUrl: optional(
    "The base URL. Defaults to the provider's public API.",
    httpAddress,
    "the provider's public API",
  ),
  headers,
  reasoningContent: optional(
    "For OpenAI-compatible servers: whether to send `reasoning_content` back with earlier answers. By default, only providers named after DeepSeek or Moonshot (Kimi) receive it.",
    flag,
    "the default for the provider's name",
  ),
  models,
});

const providers = table(
  "Providers, by the part of a model's name before the slash.",
  keysLike(
    "<provider>",
    "a provider name: letters, digits, dots, underscores and hyphens",
    "^[A-Za-z0-9][A-Za-z0-9._-]*$",
  ),
  provider,
);

export const modelsSection = group("The available models.", { providers });
