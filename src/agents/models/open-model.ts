import type { LanguageModelV4 } from "@ai-sdk/provider";
import { rehearsalModel } from "../../config/default-model.ts";
import type { ModelSettings } from "../../config/model-settings.ts";
import { modelSettings, providerType } from "../../config/model-settings.ts";
import type { Config } from "../../config/sections/all.ts";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Api } from "../../transcript/contract.ts";
import type { ModelRef } from "../../transcript/parse-model.ts";
import { apiOf } from "../../transcript/policy.ts";
import { limitResponses } from "./answer-limit.ts";

/** Which package speaks to a provider. */
export type ModelType = "anthropic" | "openai" | "google" | "mistral" | "openai-compatible";

export interface OpenModelOptions {
  /** Left out: the package looks into its own environment variable when the model is asked. */
  readonly apiKey?: string;
  readonly baseUrl?: string;
  readonly headers?: Record<string, string>;
  readonly fetch?: typeof globalThis.fetch;
  /** Left out: by the wire format, and without one by the provider's name; who is not known is OpenAI-compatible. */
  readonly type?: ModelType;
}

const known: readonly string[] = ["anthropic", "openai", "google", "mistral"] satisfies ModelType[];

export interface Spoken {
  readonly package: ModelType;
  readonly api: Api;
}

/**
 * Which package speaks to a model, and in which wire format: the format that is named, else the usual one of the type,
 * else that of the provider's name. The transcript is made for the format, so the package follows it.
 */
export function spokenTo({ provider, api: named }: Omit<ModelRef, "model">, type?: ModelType): Spoken {
  const api = named === undefined && type !== undefined ? apiOf(type) : apiOf(provider, named);
  switch (api) {
    case "anthropic-messages":
      return { package: "anthropic", api };
    case "google-generative-ai":
      return { package: "google", api };
    case "mistral-conversations":
      return { package: "mistral", api };
    case "openai-responses":
      return { package: "openai", api };
    case "openai-completions":
      return { package: (type ?? provider) === "openai" ? "openai" : "openai-compatible", api };
  }
}

/** Opens a model. The provider's package is loaded when it is asked for, and no other. */
export async function openModel(ref: ModelRef, options: OpenModelOptions = {}): Promise<LanguageModelV4> {
  const { provider, model } = ref;
  const { apiKey, baseUrl: baseURL, headers, fetch, type } = options;
  const isKnown = known.includes(type ?? provider);
  // Whatever the format, a key of somebody else's server must not go to who made the format.
  if (!isKnown && baseURL === undefined) throw noBaseUrl(provider);
  const settings = present({ apiKey, baseURL, headers, fetch: limitResponses(fetch) });
  const spoken = spokenTo(ref, type);
  switch (spoken.package) {
    case "anthropic":
      return (await import("@ai-sdk/anthropic")).createAnthropic(settings)(model);
    case "google":
      return (await import("@ai-sdk/google")).createGoogle(settings)(model);
    case "mistral":
      return (await import("@ai-sdk/mistral")).createMistral(settings)(model);
    case "openai": {
      const openai = (await import("@ai-sdk/openai")).createOpenAI(settings);
      return spoken.api === "openai-completions" ? openai.chat(model) : openai.responses(model);
    }
    case "openai-compatible": {
      if (baseURL === undefined) throw noBaseUrl(provider);
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({ ...settings, baseURL, name: provider, includeUsage: true })(model);
    }
  }
}

/** The wire format of a model: the one that is named or configured, else the usual one of its provider. */
export function modelApi(ref: ModelRef, { api, type }: Pick<ModelSettings, "api" | "type">): Api {
  const isUnknownServer = type === "openai-compatible" && providerType(ref.provider) === type;
  return apiOf(isUnknownServer ? ref.provider : type, ref.api ?? api ?? undefined);
}

/** Refuses a model whose provider is unknown and has no base URL: most often its name is mistyped. */
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

/** A provider that nobody knows is a server whose address we need, or a slip of the pen. */
export function noBaseUrl(
  provider: string,
  howToGive = `: models.providers.${provider}.baseUrl`,
): SkeinError {
  return new SkeinError("invalid_arguments", {
    problem: `Provider "${provider}" is not known, and no address of it was given`,
    advice: `Known are ${known.join(", ")}; any other needs the base URL of its server${howToGive}`,
  });
}
