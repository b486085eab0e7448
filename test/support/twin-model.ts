import type { TurnModel } from "../../src/agents/contract.ts";
import { openModel } from "../../src/agents/models/open-model.ts";
import { priceOf } from "../../src/agents/models/prices.ts";
import type { Scripted, Twin, TwinApi } from "../../src/entry-testing.ts";
import { startTwin } from "../../src/entry-testing.ts";
import { resolveTranscriptPolicy } from "../../src/index.ts";

/** Models that thinking can be asked of, one for each wire format. */
export const providers = [
  { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" },
  { api: "google-generative-ai", provider: "google", model: "gemini-2.5-flash" },
  { api: "openai-responses", provider: "openai", model: "gpt-5" },
  { api: "openai-completions", provider: "local", model: "qwen3" },
  { api: "mistral-conversations", provider: "mistral", model: "magistral-medium-2506" },
] as const satisfies readonly { api: TwinApi; provider: string; model: string }[];

export type TwinProvider = (typeof providers)[number];

export async function twinModel(
  { api, provider, model }: TwinProvider,
  replies: readonly Scripted[],
  options: { readonly contextWindow?: number; readonly apiKey?: string } = {},
): Promise<{ twin: Twin; model: TurnModel }> {
  const { contextWindow, apiKey = "any" } = options;
  const twin = await startTwin({ api, replies, ...(contextWindow === undefined ? {} : { contextWindow }) });
  const policy = resolveTranscriptPolicy({ provider, api, model });
  return {
    twin,
    model: {
      provider,
      model,
      policy,
      info: {},
      price: priceOf(provider, model),
      open: () => openModel({ provider, model, api }, { apiKey, baseUrl: twin.url }),
    },
  };
}
