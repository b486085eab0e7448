import type { AccessSettings, VisibilitySetting } from "../../access/visibility/policy.ts";
import type { SessionRecord } from "../../store/contract.ts";

/** As much of a configuration as says who may see whom. What is left out is as by default. */
export interface AccessConfig {
  readonly tools?: AccessSettings["tools"];
  readonly agents?: { readonly [agentId: string]: AgentAccess };
}

interface AgentAccess {
  readonly visibility?: VisibilitySetting | null;
  readonly sandboxed?: boolean | null;
  readonly [setting: string]: unknown;
}

const unlessSaid: AccessSettings["tools"] = {
  sessions: { visibility: "tree" },
  agentToAgent: { enabled: false, allow: [] },
};

export function accessSettings({ tools, agents }: AccessConfig): AccessSettings {
  return { tools: tools ?? unlessSaid, agents: agents ?? {} };
}

/** Whether the configuration says that all sessions of an agent are sandboxed. */
export function sandboxedAgents({ agents }: AccessConfig): (agentId: string) => boolean {
  return (agentId) => {
    const own = agents !== undefined && Object.hasOwn(agents, agentId) ? agents[agentId] : undefined;
    return own?.sandboxed === true;
  };
}

/** A session is sandboxed where it says so itself, or its agent is. */
export function sandboxedBy(
  isAgentSandboxed: (agentId: string) => boolean,
): (session: Pick<SessionRecord, "agentId" | "meta">) => boolean {
  return ({ agentId, meta }) => meta.sandboxed === true || isAgentSandboxed(agentId);
}
