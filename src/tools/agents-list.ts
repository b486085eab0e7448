import Type from "typebox";
import { pairVerdict } from "../access/visibility/a2a.ts";
import type { AccessPolicy } from "../access/visibility/policy.ts";
import { present } from "../core/present.ts";
import type { AgentPolicy } from "../sessions/between/contract.ts";
import type { SessionTool } from "./contract.ts";

const parameters = Type.Object({}, { additionalProperties: false });

interface Requester {
  readonly id: string;
  readonly sandboxed: boolean;
  /** `null`: nobody has defined it. Then it may spawn itself alone. */
  readonly policy: AgentPolicy | null;
  readonly access: AccessPolicy;
}

/** The agents that this one may spawn or message, itself first; of no other it learns anything. */
export const agentsList: SessionTool = {
  name: "agents_list",
  label: "Agents",
  description: "List the agents that you may spawn sub-agents under or send messages to.",
  parameters: { ...parameters },
  isReadOnly: true,
  execute: async (_, call, deps) => {
    const { agentId: id, sandboxed } = call;
    const requester = { id, sandboxed, policy: deps.agents.find(id), access: deps.access.policyFor(call) };
    const ids = deps.agents.ids.toSorted((a, b) => Number(b === id) - Number(a === id));
    const agents = ids.flatMap((each) => {
      const agent = deps.agents.find(each);
      const may = agent === null ? null : whatMay(requester, agent);
      if (agent === null || may === null || !(may.spawn || may.message)) return [];
      return [{ ...present({ id: each, model: agent.model }), configured: true, ...may }];
    });
    return { result: { requester: id, agents } };
  },
};

function whatMay(requester: Requester, agent: AgentPolicy): { spawn: boolean; message: boolean } {
  return { spawn: maySpawn(requester, agent), message: mayMessage(requester, agent) };
}

/** A sandboxed session has no children that are not. */
function maySpawn({ id, sandboxed, policy }: Requester, agent: AgentPolicy): boolean {
  if (agent.id === id) return true;
  const allowed = policy?.subagents.allowAgents ?? [];
  return (allowed.includes("*") || allowed.includes(agent.id)) && (!sandboxed || agent.sandboxed);
}

function mayMessage({ id, access }: Requester, agent: AgentPolicy): boolean {
  const { send } = access.visibility;
  if (agent.id === id) return send !== "self";
  return send === "all" && pairVerdict(access.agentToAgent, id, agent.id).allowed;
}
