import { own } from "../core/json.ts";
import type { TranscriptPolicy } from "../transcript/contract.ts";
import type { Config } from "./sections/all.ts";
import type { ProviderType } from "./sections/models.ts";

type Models = Config["models"];

/** A model's configured properties. Properties that are not configured are `null`. */
export interface ModelSettings {
  readonly type: ProviderType;
  readonly api: string | null;
  readonly baseUrl: string | null;
  readonly contextWindow: number | null;
  readonly maxOutput: number | null;
  readonly vision: boolean | null;
  /** In dollars per million tokens. If all fields are `null`, the built-in price applies. */
  readonly price: PriceSettings;
  /** Overrides for the wire format's transcript policy. They are applied by `resolveTranscriptPolicy`. */
  readonly overrides: Partial<Omit<TranscriptPolicy, "provider" | "api" | "model">>;
}

export interface PriceSettings {
  readonly input: number | null;
  readonly output: number | null;
  readonly cacheRead: number | null;
  readonly cacheWrite: number | null;
}

const noPrice: PriceSettings = { input: null, output: null, cacheRead: null, cacheWrite: null };

/**
 * Returns the settings for `provider/model`, without keys and headers. A model that is not configured gets the
 * defaults.
 */
export function modelSettings({ providers }: Models, provider: string, model: string): ModelSettings {
  const settings = own(providers, provider);
  const its = own(settings?.models ?? {}, model);
  const given = Object.entries(its?.policy ?? {}).filter(([, value]) => value !== null);
  return {
    type: providerType(provider, settings?.type),
    api: settings?.api ?? null,
    baseUrl: settings?.baseUrl ?? null,
    contextWindow: its?.contextWindow ?? null,
    maxOutput: its?.maxOutput ?? null,
    vision: its?.vision ?? null,
    price: its?.price ?? noPrice,
    overrides: {
      ...returned(provider, settings),
      ...Object.fromEntries(given),
      ...(its?.vision === false ? { images: null } : {}),
    },
  };
}

/** Derives from `reasoningContent` how thinking is sent back to the provider. */
function returned(
  name: string,
  settings: Models["providers"][string] | undefined,
): Pick<ModelSettings["overrides"], "thinking"> {
  const { reasoningContent = null, type = null, api = null } = settings ?? {};
  const isCompatible =
    api === "openai-completions" || (api === null && providerType(name, type) === "openai-compatible");
  if (reasoningContent === null || !isCompatible) return {};
  return { thinking: reasoningContent ? "plain" : "none" };
}

const typeOfName: Readonly<Record<string, ProviderType>> = {
  anthropic: "anthropic",
  openai: "openai",
  google: "google",
  mistral: "mistral",
};

/**
 * Returns the configured type or, if there is none, the type that the provider's name implies. A provider with an
 * unknown name is treated as an OpenAI-compatible server.
 */
export function providerType(name: string, given: ProviderType | null = null): ProviderType {
  return given ?? own(typeOfName, name) ?? "openai-compatible";
}
