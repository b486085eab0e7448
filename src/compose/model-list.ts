import type { TurnModel } from "../agents/contract.ts";
import type { Config } from "../config/sections/all.ts";
import { present } from "../core/present.ts";
import type { ModelListPayload } from "../protocol/directory.ts";
import type { ModelPort } from "../sessions/running/contract.ts";
import { parseModel } from "../transcript/parse-model.ts";
import type { Agents } from "./agents.ts";

export interface ModelListParts {
  readonly config: Pick<Config, "models">;
  readonly agents: Agents;
  readonly models: Pick<ModelPort, "turnModel">;
  /** Names of those that the code brings. */
  readonly given: readonly string[];
}

type Row = ModelListPayload["models"][number];

/** The models that the configuration, the code or an agent names, in order. None is opened. */
export function modelList({ config, agents, models, given }: ModelListParts): readonly Row[] {
  const configured = Object.entries(config.models.providers).flatMap(([provider, settings]) =>
    Object.keys(settings.models).map((model) => `${provider}/${model}`),
  );
  const users = Map.groupBy(agents.ids, (id) => agents.find(id)?.model ?? "");
  const names = [...new Set([...configured, ...given, ...users.keys()])].filter((name) => name !== "");
  return names.toSorted().flatMap((name) => rowOf(name, models, users.get(name) ?? []));
}

function rowOf(name: string, models: ModelListParts["models"], agents: readonly string[]): Row[] {
  const found = attempt(() => models.turnModel(name));
  const ref = found ?? attempt(() => parseModel(name));
  // What cannot be read as a model is told by the run that would ask it.
  if (ref === null) return [];
  return [{ model: name, provider: ref.provider, ...known(found), agents: [...agents] }];
}

function known(model: TurnModel | null) {
  if (model === null) return { price: "unknown" as const };
  const { contextWindow, maxOutput, vision, thinking } = model.info;
  const { api } = model.policy;
  const price = model.price ?? ("unknown" as const);
  return { price, ...present({ api, contextWindow, maxOutput, vision, thinking }) };
}

function attempt<T>(act: () => T): T | null {
  try {
    return act();
  } catch {
    return null; // nobody knows such a model: then nothing is known of it
  }
}
