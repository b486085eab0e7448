import type { Api, TranscriptPolicy } from "../../transcript/contract.ts";
import { choice, flag, httpAddress, numberBetween, optional, text, wholeNumber } from "../settings/kinds.ts";
import type { Setting, ValueKind } from "../settings/setting.ts";
import { group, table } from "../settings/setting.ts";
import { anyName, headers, keysLike } from "./tables.ts";

/** The parts of a transcript policy that a model can override. Images are set by `vision`. */
export type PolicySettings = Omit<TranscriptPolicy, "provider" | "api" | "model" | "images">;

const override = <T>(about: string, kind: ValueKind<T>) =>
  optional(`${about}; null: the default of its wire format.`, kind, "the default of its wire format");

const fields: { readonly [Field in keyof PolicySettings]: Setting<PolicySettings[Field] | null> } = {
  sanitizeMode: override(
    "Whether the whole transcript is sanitized, or only its images",
    choice("full", "images-only"),
  ),
  toolCallIds: override("Which tool call IDs it accepts", choice("strict", "strict9", "kept")),
  callsWithoutTools: override(
    "How earlier tool calls are sent in a request without tools",
    choice("native", "text"),
  ),
  repairToolPairing: override("Whether the pairing of calls and results is repaired", flag),
  missingResults: override("How a call without a result is sent", choice("synthetic", "drop")),
  thinking: override(
    "In which form its own thinking is sent back",
    choice("signed", "base64", "items", "plain", "none"),
  ),
  foreignThinking: override("How another model's thinking is sent", choice("text", "drop")),
  firstTurn: override("Whose turn must be first", choice("user", "any")),
  turns: override(
    "Whose rules for the order of turns apply",
    choice("anthropic", "gemini", "mistral", "any"),
  ),
  toolResultImages: override("Where images of a tool result are sent", choice("inside", "behind")),
};

/** For servers that deviate from their declared wire format. */
export const policy = group(
  "The rules for transcripts, if they differ from those of the wire format.",
  fields,
);

/** The API that a provider offers. */
export type ProviderType = "openai-compatible" | "anthropic" | "openai" | "google" | "mistral";

const type = optional(
  "The provider's API; null: determined by its name; an unknown name means openai-compatible.",
  choice<ProviderType>("openai-compatible", "anthropic", "openai", "google", "mistral"),
  "the type that its name implies",
);

const apiKey: Setting<string | null> = {
  ...optional("The API key, preferably a variable; null: the provider's own variable.", text, "none"),
  secret: true,
};

const tokens = (about: string) => optional(about, wholeNumber(1), "the known value");
const dollars = (of: string) =>
  optional(
    `Dollars per million tokens ${of}; null: the known value.`,
    numberBetween(0, 1_000_000),
    "the known value",
  );
const price = group("Its prices.", {
  input: dollars("of a request"),
  output: dollars("of an answer"),
  cacheRead: dollars("read from the cache"),
  cacheWrite: dollars("written to the cache"),
});
const model = group("A model, if its properties differ from the known ones.", {
  contextWindow: tokens("Its context window in tokens; null: the known value."),
  maxOutput: tokens("Maximum number of tokens of an answer; null: the known value."),
  vision: optional("Whether it accepts images; null: the known value.", flag, "the known value"),
  price,
  policy,
});
const models = table(
  "Models, by their names at the provider.",
  anyName("<model>", "the name of a model"),
  model,
);

const provider = group("A provider of models.", {
  type,
  api: optional(
    "The wire format; null: the provider's default.",
    choice<Api>(
      "anthropic-messages",
      "google-generative-ai",
      "openai-completions",
      "openai-responses",
      "mistral-conversations",
    ),
    "the usual one",
  ),
  apiKey,
  baseUrl: optional("The base URL; null: the provider's default.", httpAddress, "the usual address"),
  headers,
  reasoningContent: optional(
    "Whether answers are sent back with their reasoning_content, for OpenAI-compatible servers; null: only to DeepSeek and Moonshot (Kimi), by the provider's name.",
    flag,
    "the type that its name implies",
  ),
  models,
});

const providers = table(
  "Providers, by the name before the slash of a model.",
  keysLike(
    "<provider>",
    "the name of a provider: letters, digits, dot, underscore and hyphen",
    "^[A-Za-z0-9][A-Za-z0-9._-]*$",
  ),
  provider,
);

export const modelsSection = group("The available models.", { providers });
