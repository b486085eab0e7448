import type { ToolLayer } from "../agents/tools/select-tools.ts";
import type { Run } from "../runs/contract.ts";
import { childToolLayers, spawnerOf } from "../sessions/between/child-tools.ts";
import type { SubagentPolicy } from "../sessions/between/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { Agent } from "./agents.ts";

/** What an agent says of the tools of those that its sessions spawn; `null`: nothing. */
export type SubagentRules = (agentId: string) => Pick<SubagentPolicy, "tools"> | null;

/** An agent as far as rules about tools go. */
export type RuledAgent = Pick<Agent, "id" | "allow" | "deny" | "ask">;

/** What agent and run allow. */
export function layersOf(
  { id, allow, deny, ask }: RuledAgent,
  wanted: readonly string[] | undefined,
): readonly ToolLayer[] {
  return [
    { of: `agent ${id}`, ...(allow === undefined ? {} : { allow }), deny, ask },
    ...(wanted === undefined ? [] : [{ of: "this run", allow: wanted }]),
  ];
}

/** With the rules of a session that was spawned, as the agent that spawned it changes them. */
export function toolLayers(
  agent: RuledAgent,
  run: Run | null,
  { meta }: Pick<SessionRecord, "meta">,
  subagents: SubagentRules,
): readonly ToolLayer[] {
  return [
    ...layersOf(agent, run?.options.tools),
    ...childToolLayers(meta, subagents(spawnerOf(meta, agent.id))),
  ];
}
