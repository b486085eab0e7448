import { SkeinError } from "../core/errors.ts";
import { providerType } from "./model-settings.ts";
import type { Config } from "./sections/all.ts";
import type { Environment } from "./variables.ts";

/** A provider that anyone can get an API key for. */
export interface KeyedProvider {
  readonly provider: string;
  /** The environment variables that can contain its API key, in order of precedence. */
  readonly variables: readonly string[];
  /** The model for agents that have none configured. */
  readonly model: string;
}

/** In order of preference. The first provider with an API key is used. */
export const keyedProviders: readonly KeyedProvider[] = [
  { provider: "anthropic", variables: ["ANTHROPIC_API_KEY"], model: "claude-sonnet-4-6" },
  { provider: "openai", variables: ["OPENAI_API_KEY"], model: "gpt-5.4" },
  {
    provider: "google",
    variables: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"],
    model: "gemini-3.8-flash",
  },
  { provider: "mistral", variables: ["MISTRAL_API_KEY"], model: "mistral-large-latest" },
];

/** The model to use when no API key is set. */
export const rehearsalModel = "rehearsal/basic";

/** Returns the variable that contains a provider's API key, or `null`. A blank value is ignored. */
export function keyVariable({ variables }: KeyedProvider, env: Environment): string | null {
  return variables.find((name) => isKey(env(name))) ?? null;
}

/**
 * Picks the model for an agent that has none configured. This is a model from the first provider with an API key in the
 * environment or the configuration, or the rehearsal model if no key is set. Throws `invalid_arguments` if the only key
 * belongs to a provider whose models are unknown.
 */
export function defaultModel(env: Environment, { models }: Pick<Config, "models">): string {
  const configured = Object.entries(models.providers).flatMap(([name, { apiKey }]) =>
    isKey(apiKey) ? [name] : [],
  );
  const keyed = keyedProviders
    .filter((known) => configured.includes(known.provider) || keyVariable(known, env) !== null)
    .map(({ provider }) => provider);
  for (const provider of [...keyed, ...configured]) {
    const model = firstModel(provider, models);
    if (model !== null) return model;
  }
  const [unknown] = [...keyed, ...configured];
  if (unknown === undefined) return rehearsalModel;
  throw new SkeinError("invalid_arguments", {
    problem: `No model is configured, and Skein does not know which models the provider ${unknown} offers`,
    advice: `Set one in the configuration, for example defaults: { model: "${unknown}/<model>" }`,
  });
}

/**
 * Returns the default model for the provider's type or, if there is none, the provider's first configured model.
 * Returns `null` if there is neither.
 */
function firstModel(provider: string, { providers }: Config["models"]): string | null {
  const settings = Object.hasOwn(providers, provider) ? providers[provider] : undefined;
  const type = providerType(provider, settings?.type);
  const usual = keyedProviders.find((known) => known.provider === type)?.model;
  const model = usual ?? Object.keys(settings?.models ?? {})[0];
  return model === undefined ? null : `${provider}/${model}`;
}

function isKey(value: string | null | undefined): boolean {
  return typeof value === "string" && value.trim() !== "";
}
