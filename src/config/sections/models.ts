import type { Api, TranscriptPolicy } from "../../transcript/contract.ts";
import { choice, flag, httpAddress, numberBetween, optional, text, wholeNumber } from "../settings/kinds.ts";
import type { Setting, Table, ValueKind } from "../settings/setting.ts";
import { group } from "../settings/setting.ts";
import { anyName, headers, keysLike } from "./tables.ts";

/** What of a transcript policy a model may have otherwise; images are `vision`. */
export type PolicySettings = Omit<TranscriptPolicy, "provider" | "api" | "model" | "images">;

const override = <T>(about: string, kind: ValueKind<T>) =>
  optional(`${about}; null: by its wire format.`, kind, "what its wire format asks for");

const fields: { readonly [Field in keyof PolicySettings]: Setting<PolicySettings[Field] | null> } = {
  sanitizeMode: override(
    "Whether all of a transcript is made clean, or its images alone",
    choice("full", "images-only"),
  ),
  toolCallIds: override("Which ids of tool calls it takes", choice("strict", "strict9", "kept")),
  callsWithoutTools: override(
    "How it gets earlier tool calls in a request without tools",
    choice("native", "text"),
  ),
  repairToolPairing: override("Whether calls and results are put together again", flag),
  missingResults: override("What becomes of a call without a result", choice("synthetic", "drop")),
  thinking: override(
    "In which form it takes its own thinking back",
    choice("signed", "base64", "items", "plain", "none"),
  ),
  foreignThinking: override("What becomes of another model's thinking", choice("text", "drop")),
  firstTurn: override("Who must have the first turn", choice("user", "any")),
  turns: override("Whose rules turns are held to", choice("anthropic", "gemini", "mistral", "any")),
  toolResultImages: override("Where images of a tool's result may stand", choice("inside", "behind")),
};

/** For servers that are not quite what they say they are. */
export const policy = group(
  "What the model asks of a transcript, where it is otherwise than its wire format.",
  fields,
);

/** How a provider is spoken to. */
export type ProviderType = "openai-compatible" | "anthropic" | "openai" | "google" | "mistral";

const type = optional(
  "How the provider is spoken to; null: by its name, and any other name is openai-compatible.",
  choice<ProviderType>("openai-compatible", "anthropic", "openai", "google", "mistral"),
  "what its name says",
);

const apiKey: Setting<string | null> = {
  ...optional(
    "The key to the provider, best as a variable; null: the provider's own variable.",
    text,
    "none",
  ),
  secret: true,
};

const tokens = (about: string) => optional(about, wholeNumber(1), "what is known of the model");
const dollars = (of: string) =>
  optional(
    `Dollars for a million tokens ${of}; null: what is known of the model.`,
    numberBetween(0, 1_000_000),
    "what is known of the model",
  );
const price = group("What it costs.", {
  input: dollars("of a request"),
  output: dollars("of an answer"),
  cacheRead: dollars("that the provider had kept"),
  cacheWrite: dollars("that the provider keeps"),
});
const model = group("A model, where it is otherwise than is known of it.", {
  contextWindow: tokens("Its context window in tokens; null: what is known of the model."),
  maxOutput: tokens("Tokens of an answer at the most; null: what is known of the model."),
  vision: optional(
    "Whether it sees images; null: what is known of the model.",
    flag,
    "what is known of the model",
  ),
  price,
  policy,
});
const models: Table<typeof model> = {
  node: "table",
  about: "Models, by their names with the provider.",
  keyName: "<model>",
  keyExpected: "the name of a model",
  ...anyName,
  of: model,
};

const provider = group("A provider of models.", {
  type,
  api: optional(
    "The wire format; null: the provider's usual one.",
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
  baseUrl: optional(
    "Where the provider is reached; null: at its usual address.",
    httpAddress,
    "the usual address",
  ),
  headers,
  reasoningContent: optional(
    "Whether answers go back with their reasoning_content, for OpenAI-compatible servers; null: only to DeepSeek and Moonshot (Kimi), by the provider's name.",
    flag,
    "what its name says",
  ),
  models,
});

const providers: Table<typeof provider> = {
  node: "table",
  about: "Providers, by the name that stands before the slash of a model.",
  keyName: "<provider>",
  keyExpected: "the name of a provider: letters, digits, dot, underscore and hyphen",
  ...keysLike("^[A-Za-z0-9][A-Za-z0-9._-]*$"),
  of: provider,
};

export const modelsSection = group("Which models there are, and where.", { providers });
