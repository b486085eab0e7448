import { readAgentId } from "../../core/names.ts";
import type { AgentToAgent } from "./a2a.ts";
import { readAllowList } from "./a2a.ts";

/** What an asker may see: itself, all that it spawned, all of its agent, or any of its user's. */
export type Visibility = "self" | "tree" | "agent" | "all";

export const accessActions = ["list", "history", "send", "status"] as const;

/** What is done with a session that is seen: to be allowed to send is not to be allowed to read. */
export type AccessAction = (typeof accessActions)[number];

export type VisibilityByAction = { readonly [Action in AccessAction]: Visibility };

/** One word for every action, or a word for some; what is left out, or `null`, is said elsewhere. */
export type VisibilitySetting = Visibility | { readonly [Action in AccessAction]?: Visibility | null };

/** The part of a configuration that says who may see whom. */
export interface AccessSettings {
  readonly tools: {
    readonly sessions: { readonly visibility: VisibilitySetting };
    readonly agentToAgent: { readonly enabled: boolean; readonly allow: readonly string[] };
  };
  /** By agent id. What an agent says goes before what `tools` says. */
  readonly agents: { readonly [agentId: string]: { readonly visibility?: VisibilitySetting | null } };
}

/** What holds for an asker. */
export interface AccessPolicy {
  readonly visibility: VisibilityByAction;
  readonly agentToAgent: AgentToAgent;
  readonly sandboxed: boolean;
}

const unlessSaid: Visibility = "tree";

export function accessPolicy(
  { tools, agents }: AccessSettings,
  asker: { readonly agentId: string; readonly sandboxed: boolean },
): AccessPolicy {
  const agentId = readAgentId(asker.agentId) ?? asker.agentId;
  const own = Object.hasOwn(agents, agentId) ? agents[agentId]?.visibility : null;
  const { enabled, allow } = tools.agentToAgent;
  const of = (action: AccessAction): Visibility => {
    const said = saidOf(own, action) ?? saidOf(tools.sessions.visibility, action) ?? unlessSaid;
    return asker.sandboxed && said !== "self" ? "tree" : said;
  };
  return {
    visibility: { list: of("list"), history: of("history"), send: of("send"), status: of("status") },
    agentToAgent: { enabled, allow: readAllowList(allow) },
    sandboxed: asker.sandboxed,
  };
}

function saidOf(setting: VisibilitySetting | null | undefined, action: AccessAction): Visibility | null {
  return (typeof setting === "string" ? setting : setting?.[action]) ?? null;
}
