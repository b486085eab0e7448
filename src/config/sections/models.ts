import type { Api } from "../../transcript/contract.ts";
import { choice, flag, httpAddress, numberBetween, orNone, text, wholeNumber } from "../settings/kinds.ts";
import type { Group, Setting, Table, ValueKind } from "../settings/setting.ts";
import { headers } from "./headers.ts";
import { anyName } from "./names.ts";
import { policy } from "./policy.ts";

/** How a provider is spoken to. */
export type ProviderType = "openai-compatible" | "anthropic" | "openai" | "google" | "mistral";

/** A setting that says nothing unless it is given. */
function optional<T>(about: string, kind: ValueKind<T>, meaning: string): Setting<T | null> {
  return { node: "setting", about, kind: orNone(kind, meaning), fallback: () => null };
}

const type = optional(
  "How the provider is spoken to; null: by its name, and any other name is openai-compatible.",
  choice<ProviderType>("openai-compatible", "anthropic", "openai", "google", "mistral"),
  "what its name says",
);
const api = optional(
  "The wire format; null: the provider's usual one.",
  choice<Api>(
    "anthropic-messages",
    "google-generative-ai",
    "openai-completions",
    "openai-responses",
    "mistral-conversations",
  ),
  "the usual one",
);
const apiKey: Setting<string | null> = {
  ...optional(
    "The key to the provider, best as a variable; null: the provider's own variable.",
    text,
    "none",
  ),
  secret: true,
};
const baseUrl = optional(
  "Where the provider is reached; null: at its usual address.",
  httpAddress,
  "the usual address",
);

const reasoningContent = optional(
  "Whether answers go back with their reasoning_content, for OpenAI-compatible servers; null: only to DeepSeek and Moonshot (Kimi), by the provider's name.",
  flag,
  "what its name says",
);

const tokens = (about: string) => optional(about, wholeNumber(1), "what is known of the model");
const dollars = (of: string) =>
  optional(
    `Dollars for a million tokens ${of}; null: what is known of the model.`,
    numberBetween(0, 1_000_000),
    "what is known of the model",
  );
const price = {
  node: "group",
  about: "What it costs.",
  fields: {
    input: dollars("of a request"),
    output: dollars("of an answer"),
    cacheRead: dollars("that the provider had kept"),
    cacheWrite: dollars("that the provider keeps"),
  },
} satisfies Group;
const model = {
  node: "group",
  about: "A model, where it is otherwise than is known of it.",
  fields: {
    contextWindow: tokens("Its context window in tokens; null: what is known of the model."),
    maxOutput: tokens("Tokens of an answer at the most; null: what is known of the model."),
    vision: optional(
      "Whether it sees images; null: what is known of the model.",
      flag,
      "what is known of the model",
    ),
    price,
    policy,
  },
} satisfies Group;
const models: Table<typeof model> = {
  node: "table",
  about: "Models, by their names with the provider.",
  keyName: "<model>",
  keyExpected: "the name of a model",
  ...anyName,
  of: model,
};

const provider = {
  node: "group",
  about: "A provider of models.",
  fields: { type, api, apiKey, baseUrl, headers, reasoningContent, models },
} satisfies Group;

const providers: Table<typeof provider> = {
  node: "table",
  about: "Providers, by the name that stands before the slash of a model.",
  keyName: "<provider>",
  keyExpected: "the name of a provider: letters, digits, dot, underscore and hyphen",
  keySchema: { pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*$" },
  readKey: (name) => (/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name) ? name : null),
  of: provider,
  fallbackKeys: [],
};

export const modelsSection = {
  node: "group",
  about: "Which models there are, and where.",
  fields: { providers },
} satisfies Group;
