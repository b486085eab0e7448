import type { AccessPolicy } from "../access/visibility/access-policy.ts";
import { accessActions, checkAgentPair, resolveAccessPolicy } from "../access/visibility/access-policy.ts";
import type { TurnModel } from "../agents/contract.ts";
import { agentSettings } from "../config/agent-settings.ts";
import { present } from "../core/present.ts";
import type { AgentListPayload, ModelListPayload } from "../protocol/directory.ts";
import { parseModel } from "../transcript/model-table.ts";
import type { Agent, Agents } from "./agents.ts";
import type { App, Models } from "./app.ts";

type AgentRow = AgentListPayload["agents"][number];

/** Lists the defined agents, followed by agents that are not defined but have sessions for this user. */
export async function listAgents(
  app: Pick<App, "agents" | "config" | "store" | "tools">,
  userId: string | null,
): Promise<AgentRow[]> {
  const { agents, store } = app;
  const withSessions = await store.sessions.agentIds(present({ userId }));
  const ids = [...new Set([...agents.ids, ...withSessions])];
  return Promise.all(ids.map((id) => agentRow(app, id, ids)));
}

async function agentRow(
  { agents, config, tools }: Pick<App, "agents" | "config" | "tools">,
  id: string,
  ids: readonly string[],
): Promise<AgentRow> {
  const agent = agents.find(id);
  const sandboxed = agent?.sandboxed ?? agentSettings(config, id).sandboxed;
  const policy = resolveAccessPolicy(agents.access, { agentId: id, sandboxed });
  const offered = agent === null ? [] : await tools.of(agent, null, { meta: {} });
  return {
    id,
    configured: agent !== null,
    isDefault: agent !== null && id === agents.first,
    ...present({ model: agent?.model, thinking: agent?.thinking }),
    sandboxed,
    tools: offered.map(({ name }) => name),
    visibility: { ...policy.visibility },
    reach: reachOf(id, ids, policy),
    maySpawn: agent === null ? [] : spawnable(agent, agents),
  };
}

function reachOf(id: string, ids: readonly string[], policy: AccessPolicy): AgentRow["reach"] {
  const allowed = accessActions.filter((action) => policy.visibility[action] === "all");
  if (allowed.length === 0) return [];
  return ids
    .filter((other) => other !== id && checkAgentPair(policy.agentToAgent, id, other).allowed)
    .map((agentId) => ({ agentId, actions: [...allowed] }));
}

/** Returns the agent itself and the agents that it can spawn. A sandboxed agent can spawn only sandboxed agents. */
function spawnable({ id, sandboxed, subagents }: Agent, agents: Agents): string[] {
  const named = [...new Set([id, ...subagents.allowAgents])];
  if (!sandboxed) return named;
  const isAlsoSandboxed = (each: string) => agents.find(each)?.sandboxed === true;
  return (named.includes("*") ? agents.ids : named).filter(isAlsoSandboxed);
}

type ModelRow = ModelListPayload["models"][number];

/** Lists the models named in the configuration, in code or by an agent, sorted by name. Does not open any model. */
export function listModels({
  config,
  agents,
  models,
}: Pick<App, "config" | "agents" | "models">): ModelRow[] {
  const configured = Object.entries(config.models.providers).flatMap(([provider, settings]) =>
    Object.keys(settings.models).map((model) => `${provider}/${model}`),
  );
  const users = Map.groupBy(agents.ids, (id) => agents.find(id)?.model ?? "");
  const names = [...new Set([...configured, ...models.given, ...users.keys()])].filter((name) => name !== "");
  return names.toSorted().flatMap((name) => modelRow(name, models, users.get(name) ?? []));
}

function modelRow(name: string, models: Pick<Models, "turnModel">, agents: readonly string[]): ModelRow[] {
  const found = attempt(() => models.turnModel(name));
  const ref = found ?? attempt(() => parseModel(name));
  // An invalid model name is reported by the run that uses it.
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
    return null; // An unknown model is listed without details.
  }
}
