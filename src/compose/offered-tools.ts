import type { Tool } from "../agents/contract.ts";
import type { ToolLayer } from "../agents/tools/select-tools.ts";
import { joinTools, selectTools } from "../agents/tools/select-tools.ts";
import type { Config } from "../config/sections/all.ts";
import type { Run } from "../runs/contract.ts";
import type { OfferedTools } from "../sessions/skein/skein.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { Agent, Agents } from "./agents.ts";
import { mcpReach, mcpSourceName } from "./mcp-reach.ts";
import { toolLayers } from "./tool-layers.ts";
import type { ToolReach } from "./tool-reach.ts";
import { mayReach } from "./tool-reach.ts";

/** A tool as far as a request has it. */
export type ListedTool = Pick<Tool, "name" | "description" | "inputSchema" | "groups">;

/** What is known of a source without starting anything; `null`: it has told nobody yet. */
export interface ListedSource {
  readonly from: string;
  readonly reach?: ToolReach | undefined;
  readonly tools: readonly ListedTool[] | null;
}

/** The tools that a turn under these rules would be offered, and the sources that it would ask first. */
export function offeredTools(sources: readonly ListedSource[], layers: readonly ToolLayer[]): OfferedTools {
  const reached = sources.filter(({ reach }) => reach === undefined || mayReach(reach, layers));
  const listed = reached.flatMap(({ from, tools }) => (tools === null ? [] : [{ from, tools }]));
  const { tools } = selectTools(joinTools(listed), layers);
  const unlisted = reached.filter((source) => source.tools === null);
  return {
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
    unlisted: unlisted.map(({ from, reach }) => ({ from, prefix: reach?.prefix ?? "" })),
  };
}

/** The same in a folder where nothing runs, by its configuration. */
export async function toolsByConfig(
  config: Config,
  agents: Agents,
  agent: Agent,
  session: SessionRecord,
  run: Run | null,
): Promise<OfferedTools> {
  const servers = Object.keys(config.mcpServers).map((name) => ({
    from: mcpSourceName(name),
    reach: mcpReach(name),
    tools: null,
  }));
  const layers = toolLayers(agent, run, session, (agentId) => agents.policy(agentId)?.subagents ?? null);
  return offeredTools([{ from: "Skein", tools: await listedSessionTools() }, ...servers], layers);
}

async function listedSessionTools(): Promise<readonly ListedTool[]> {
  const { sessionToolTable } = await import("../tools/all.ts");
  const { sessionsGroup } = await import("../tools/to-runtime-tool.ts");
  const { toldSchema } = await import("../tools/told-schema.ts");
  return sessionToolTable.map(({ name, description, parameters }) => ({
    name,
    description,
    inputSchema: toldSchema(parameters),
    groups: [sessionsGroup],
  }));
}
