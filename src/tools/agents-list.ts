import type { AccessPolicy } from "../access/visibility/access-policy.ts";
import { checkAgentPair } from "../access/visibility/access-policy.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { Agent } from "../sessions/agents.ts";
import type { AcpAgents } from "../sessions/app.ts";
import { depthProblem } from "../sessions/spawn-request.ts";
import type { SessionTool } from "./session-tool.ts";

const parameters = s.closed({});

interface Requester {
  readonly id: string;
  readonly sandboxed: boolean;
  /** `null` if the agent is not defined. It can then spawn only itself. */
  readonly policy: Agent | null;
  readonly access: AccessPolicy;
  /** `false` for a leaf and at the depth limit. */
  readonly canSpawn: boolean;
}

/**
 * Lists the agents that the caller's agent can spawn or message, starting with that agent itself. Reveals nothing about
 * other agents.
 */
export const agentsList: SessionTool = {
  name: "agents_list",
  label: "Agents",
  description: "List the agents that you may use as sub-agents or send messages to.",
  parameters,
  output: outputs.agentsList,
  isReadOnly: true,
  execute: async (_, call, app) => {
    const { agentId: id, sandboxed } = call;
    const policy = app.agents.find(id);
    const max = policy?.subagents.maxSpawnDepth ?? 1;
    const canSpawn = call.session === null || depthProblem(call.session.meta, max) === null;
    const requester = { id, sandboxed, policy, access: app.access.policyFor(call), canSpawn };
    const ids = app.agents.ids.toSorted((a, b) => Number(b === id) - Number(a === id));
    const agents = ids.flatMap((each) => {
      const agent = app.agents.find(each);
      const may = agent === null ? null : whatMay(requester, agent);
      if (agent === null || may === null || !(each === id || may.spawn || may.message)) return [];
      return [{ ...present({ id: each, model: agent.model }), configured: true, ...may }];
    });
    const all = [...agents, ...acpAgents(requester, app.acp)];
    return { result: { requester: id, agents: all, ...present({ note: noteOf(requester) }) } };
  },
};

/**
 * Lists the ACP agents, which run on the host. The agents themselves cannot be messaged, but the sessions spawned with
 * them can.
 */
function acpAgents({ canSpawn, sandboxed, policy }: Requester, { names }: AcpAgents) {
  if (!canSpawn || sandboxed || policy === null) return [];
  return names.map((id) => ({ id, runtime: "acp", configured: true, spawn: true, message: false }));
}

/** Explains the limits on `message`. */
function noteOf({ access }: Requester): string | undefined {
  const { send } = access.visibility;
  return send === "tree"
    ? "You may send messages only to sessions that you have spawned, regardless of their agent."
    : undefined;
}

function whatMay(requester: Requester, agent: Agent): { spawn: boolean; message: boolean } {
  return { spawn: maySpawn(requester, agent), message: mayMessage(requester, agent) };
}

/** Whether an agent can be spawned. A sandboxed session can spawn only sandboxed agents. */
function maySpawn({ id, sandboxed, policy, canSpawn }: Requester, agent: Agent): boolean {
  if (!canSpawn) return false;
  if (agent.id === id) return true;
  const allowed = policy?.subagents.allowAgents ?? [];
  return (allowed.includes("*") || allowed.includes(agent.id)) && (!sandboxed || agent.sandboxed);
}

function mayMessage({ id, access }: Requester, agent: Agent): boolean {
  const { send } = access.visibility;
  if (agent.id === id) return send !== "self";
  return send === "all" && checkAgentPair(access.agentToAgent, id, agent.id).allowed;
}
