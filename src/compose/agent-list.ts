import type { AccessPolicy } from "../access/visibility/access-policy.ts";
import { accessActions, checkAgentPair, resolveAccessPolicy } from "../access/visibility/access-policy.ts";
import { agentSettings } from "../config/agent-settings.ts";
import type { Config } from "../config/sections/all.ts";
import { present } from "../core/present.ts";
import type { AgentListPayload } from "../protocol/directory.ts";
import type { Store } from "../store/contract.ts";
import type { Agent, Agents } from "./agents.ts";
import type { RunTools } from "./run-tools.ts";

export interface AgentListParts {
  readonly agents: Agents;
  readonly config: Config;
  readonly store: Pick<Store, "sessions">;
  readonly tools: Pick<RunTools, "of">;
}

type Row = AgentListPayload["agents"][number];

/** The agents that are defined, and behind them those that only have sessions of this user. */
export async function agentList(parts: AgentListParts, userId: string | null): Promise<readonly Row[]> {
  const { agents, store } = parts;
  const withSessions = await store.sessions.agentIds(present({ userId }));
  const ids = [...new Set([...agents.ids, ...withSessions])];
  return Promise.all(ids.map((id) => rowOf(parts, id, ids)));
}

async function rowOf(parts: AgentListParts, id: string, ids: readonly string[]): Promise<Row> {
  const { agents, config, tools } = parts;
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

function reachOf(id: string, ids: readonly string[], policy: AccessPolicy): Row["reach"] {
  const allowed = accessActions.filter((action) => policy.visibility[action] === "all");
  if (allowed.length === 0) return [];
  return ids
    .filter((other) => other !== id && checkAgentPair(policy.agentToAgent, id, other).allowed)
    .map((agentId) => ({ agentId, actions: [...allowed] }));
}

/** Itself, and whom it names; a sandboxed session has no children that are not. */
function spawnable({ id, sandboxed, subagents }: Agent, agents: Agents): string[] {
  const named = [...new Set([id, ...subagents.allowAgents])];
  if (!sandboxed) return named;
  const isKept = (each: string) => agents.find(each)?.sandboxed === true;
  return (named.includes("*") ? agents.ids : named).filter(isKept);
}
