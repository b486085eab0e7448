import type { LanguageModelV4 } from "@ai-sdk/provider";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { ModelRef } from "../../transcript/parse-model.ts";
import { apiOf } from "../../transcript/policy.ts";

/** Which package speaks to a provider. */
export type ModelType = "anthropic" | "openai" | "google" | "mistral" | "openai-compatible";

export interface OpenModelOptions {
  /** Left out: the package looks into its own environment variable when the model is asked. */
  readonly apiKey?: string;
  readonly baseUrl?: string;
  readonly headers?: Record<string, string>;
  readonly fetch?: typeof globalThis.fetch;
  /** Left out: by the provider's name; one that is not known is taken for OpenAI-compatible. */
  readonly type?: ModelType;
}

const known: readonly string[] = ["anthropic", "openai", "google", "mistral"] satisfies ModelType[];

/** Opens a model. The provider's package is loaded when it is asked for, and no other. */
export async function openModel(ref: ModelRef, options: OpenModelOptions = {}): Promise<LanguageModelV4> {
  const { provider, model } = ref;
  const type = options.type ?? (known.includes(provider) ? (provider as ModelType) : "openai-compatible");
  const api = ref.api === undefined ? undefined : apiOf(provider, ref.api);
  const { apiKey, baseUrl: baseURL, headers, fetch } = options;
  const settings = present({ apiKey, baseURL, headers, fetch });
  switch (type) {
    case "anthropic":
      return (await import("@ai-sdk/anthropic")).createAnthropic(settings)(model);
    case "google":
      return (await import("@ai-sdk/google")).createGoogle(settings)(model);
    case "mistral":
      return (await import("@ai-sdk/mistral")).createMistral(settings)(model);
    case "openai": {
      const openai = (await import("@ai-sdk/openai")).createOpenAI(settings);
      return api === "openai-completions" ? openai.chat(model) : openai.responses(model);
    }
    case "openai-compatible": {
      if (baseURL === undefined) throw noBaseUrl(provider);
      // The package for other servers has no Responses.
      if (api === "openai-responses")
        return (await import("@ai-sdk/openai")).createOpenAI({ ...settings, baseURL }).responses(model);
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({ ...settings, baseURL, name: provider, includeUsage: true })(model);
    }
  }
}

/** A provider that nobody knows is a server whose address we need, or a slip of the pen. */
export function noBaseUrl(provider: string, howToGive = ""): SkeinError {
  return new SkeinError("invalid_arguments", {
    problem: `Provider "${provider}" is not known, and no address of it was given`,
    advice: `Known are ${known.join(", ")}; any other needs the base URL of an OpenAI-compatible server${howToGive}`,
  });
}
