import type { EmbeddingModelV4, LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelPrice, TurnModel } from "../agents/contract.ts";
import type { LoopServices } from "../agents/loop/services.ts";
import { loopServices } from "../agents/loop/services.ts";
import type { OpenModelOptions } from "../agents/models/open-model.ts";
import { checkReachable, modelApi } from "../agents/models/open-model.ts";
import { costOf, priceOf } from "../agents/models/prices.ts";
import { keyedProviders, keyVariable } from "../config/default-model.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { ModelSettings } from "../config/model-settings.ts";
import { modelSettings } from "../config/model-settings.ts";
import type { Config } from "../config/sections/all.ts";
import type { Environment } from "../config/variables.ts";
import { SkeinError } from "../core/errors.ts";
import { own } from "../core/json.ts";
import type { Usage } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { Models } from "../sessions/app.ts";
import type { EmbeddingApp, TextEmbedder } from "../sessions/embeddings.ts";
import { Embeddings } from "../sessions/embeddings.ts";
import type { ModelRef } from "../transcript/model-table.ts";
import { modelInfo, parseModel } from "../transcript/model-table.ts";
import { resolveTranscriptPolicy } from "../transcript/policy.ts";

/** The application's own models, by provider/model. */
export type GivenModels = Readonly<Record<string, LanguageModelV4>>;

export interface ModelSources {
  readonly config: Pick<Config, "models">;
  readonly env: Environment;
  /** Models supplied by the application, by provider/model. They take precedence over all others. */
  readonly given?: GivenModels;
  readonly loop?: Partial<LoopServices>;
}

/** The provider of the built-in model, which sends nothing over the network and costs nothing. */
const rehearsal = "rehearsal";
/** The provider name for messages from ACP agents: `acp/codex`. */
const acp = "acp";
const noCharge: ModelPrice = { input: 0, output: 0, source: "rehearsal" };

/** Returns all models that a run can name. The provider package for a model is loaded on the model's first request. */
export function createModels(sources: ModelSources): Models {
  const { given = {}, config } = sources;
  return {
    turnModel: (name) => turnModel(sources, name),
    isGiven: (name) => Object.hasOwn(given, name),
    given: Object.keys(given),
    check: (name) => {
      turnModel(sources, name);
      if (!Object.hasOwn(given, name)) checkReachable(parseModel(name), config.models);
    },
    summarizer: (model, options) => async (request) => {
      const { summarizerOf } = await import("../agents/loop/summarizer.ts");
      const onUsage = (usage: Usage) => options.onUsage(priced(usage, model));
      return summarizerOf(model, { ...options, onUsage }, loopServices(sources.loop))(request);
    },
  };
}

/** Returns the usage to charge. If the price is unknown, the cost is also unknown, which is not the same as zero. */
function priced({ cost: _, ...tokens }: Usage, { price }: TurnModel): Usage {
  return price === null ? tokens : { ...tokens, cost: costOf(tokens, price) };
}

function turnModel(sources: ModelSources, name: string): TurnModel {
  const ref = parseModel(name);
  const { provider, model } = ref;
  const given = own(sources.given ?? {}, name);
  if (provider === acp) return ofAcpAgent(ref);
  const isRehearsal = provider === rehearsal;
  if (isRehearsal && given === undefined && model !== "basic") {
    const problem = "the only rehearsal model is rehearsal/basic";
    throw new SkeinError("model_not_found", { model: `${provider}/${model}`, problem });
  }
  const settings = modelSettings(sources.config.models, provider, model);
  const api = modelApi(ref, settings);
  const known = modelInfo(provider, model, api);
  const { contextWindow, maxOutput, vision } = settings;
  const info = { ...known, ...present({ contextWindow, maxOutput, vision }) };
  const sight = info.vision === false ? { images: null } : {};
  const policy = resolveTranscriptPolicy({ ...ref, api, overrides: { ...sight, ...settings.overrides } });
  const price = priceFor(settings, isRehearsal ? noCharge : priceOf(provider, model));
  return {
    provider,
    model,
    policy,
    info,
    price,
    open: once(
      async () => given ?? (isRehearsal ? openRehearsal() : opened(sources, { ...ref, api }, settings)),
    ),
  };
}

/**
 * Configured prices take precedence over known ones. The price is unknown unless both an input and an output price are
 * set.
 */
function priceFor({ price }: ModelSettings, known: ModelPrice | null): ModelPrice | null {
  const configured = present(price);
  if (Object.keys(configured).length === 0) return known;
  // A partially overridden price no longer matches the price list.
  const { date: _, input, output, ...rest } = { ...known, ...configured, source: "configuration" };
  return input === undefined || output === undefined ? null : { input, output, ...rest };
}

async function openRehearsal(): Promise<LanguageModelV4> {
  const { rehearsalModel } = await import("../agents/rehearsal/rehearsal-model.ts");
  return rehearsalModel();
}

/** Describes an ACP agent's model, which is unknown here because the agent is called over its own protocol. */
function ofAcpAgent(ref: ModelRef): TurnModel {
  const { provider, model } = ref;
  const policy = resolveTranscriptPolicy({ ...ref, api: "openai-completions" });
  const problem = "it is an ACP agent, not a model";
  const open = () =>
    Promise.reject(new SkeinError("model_not_found", { model: `${provider}/${model}`, problem }));
  return { provider, model, policy, info: {}, price: null, open };
}

/** Opens one model for all attempts in a turn. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => {
    made ??= make();
    return made;
  };
}

/** Returns `null` if no embedding model is given or configured. */
export function openEmbeddings(
  app: EmbeddingApp,
  { config, variable }: Pick<LoadedConfig, "config" | "variable">,
  given?: EmbeddingModelV4,
): Embeddings | null {
  const named = given ?? config.search.embed;
  return named === null ? null : new Embeddings(app, createEmbedder({ config, env: variable }, named));
}

/** Opens the model that embeds texts for search, on first use. */
function createEmbedder(
  sources: Pick<ModelSources, "config" | "env">,
  named: string | EmbeddingModelV4,
): TextEmbedder {
  const { models } = sources.config;
  if (typeof named === "string") checkReachable(parseModel(named), models);
  const open = once(async () => {
    if (typeof named !== "string") return named;
    const { openEmbeddingModel } = await import("../agents/models/open-model.ts");
    const ref = parseModel(named);
    return openEmbeddingModel(ref, openOptions(sources, ref, modelSettings(models, ref.provider, ref.model)));
  });
  return {
    model: typeof named === "string" ? named : `${named.provider}/${named.modelId}`,
    embed: async (texts, signal) => {
      const model = await open();
      const most = (await model.maxEmbeddingsPerCall) ?? texts.length;
      const vectors: number[][] = [];
      for (let at = 0; at < texts.length; at += most) {
        const values = texts.slice(at, at + most);
        vectors.push(...(await model.doEmbed({ values, abortSignal: signal })).embeddings);
      }
      return vectors;
    },
  };
}

async function opened(
  sources: ModelSources,
  ref: ModelRef,
  settings: ModelSettings,
): Promise<LanguageModelV4> {
  const { openModel } = await import("../agents/models/open-model.ts");
  return openModel(ref, openOptions(sources, ref, settings));
}

function openOptions(
  { config, env }: Pick<ModelSources, "config" | "env">,
  ref: ModelRef,
  settings: ModelSettings,
): OpenModelOptions {
  const provider = own(config.models.providers, ref.provider);
  const apiKey = provider?.apiKey ?? keyFrom(env, ref.provider);
  const { baseUrl, type } = settings;
  const headers = provider === undefined ? undefined : { ...provider.headers };
  return { ...present({ apiKey, baseUrl, headers }), type };
}

function keyFrom(env: Environment, provider: string): string | null {
  const keyed = keyedProviders.find((each) => each.provider === provider);
  const variable = keyed === undefined ? null : keyVariable(keyed, env);
  return variable === null ? null : (env(variable) ?? null);
}
