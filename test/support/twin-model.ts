import type { TurnModel } from "../../src/agents/contract.ts";
import { openModel } from "../../src/agents/models/open-model.ts";
import { priceOf } from "../../src/agents/models/prices.ts";
import type { Scripted, Twin } from "../../src/entry-testing.ts";
import { startTwin } from "../../src/entry-testing.ts";
import { resolveTranscriptPolicy } from "../../src/index.ts";
import type { TwinProvider } from "./twin-providers.ts";

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
