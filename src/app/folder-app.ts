import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/sections/all.ts";
import { systemClock } from "../core/clock.ts";
import { createIdSource } from "../core/ids.ts";
import { thrownText } from "../core/text.ts";
import type { ProcessFolder } from "../file-access/file-boundary.ts";
import type { FolderApp } from "../gateway/methods/dispatch.ts";
import type { Run } from "../runs/contract.ts";
import type { Agent } from "../sessions/agents.ts";
import { Agents } from "../sessions/agents.ts";
import { HookRegistry } from "../sessions/hooks.ts";
import type { ListedTool, OfferedTools } from "../sessions/run-tools.ts";
import { offeredTools, toolLayers } from "../sessions/run-tools.ts";
import type { SessionRecord } from "../store/contract.ts";
import { configuredFileBoundary } from "./files.ts";
import { mcpReach, mcpSourceName } from "./mcp.ts";
import { createModels, openEmbeddings } from "./models.ts";
import { redactorOf } from "./redaction.ts";
import type { FolderStore } from "./runs.ts";

/** Commands print and accept short keys for the agent `main`, regardless of the configured agents. */
class FolderAgents extends Agents {
  override get first(): string {
    return "main";
  }
}

const notRunning = {
  clock: systemClock,
  closed: new AbortController().signal,
  report: (error: unknown) => void process.stderr.write(`skein: ${thrownText(error)}\n`),
};

/**
 * Returns the dependencies for methods on a folder in which this process executes no runs. They include the configured
 * agents and models, but no hooks.
 */
export function folderApp(
  store: FolderStore,
  loaded: LoadedConfig,
  folder: ProcessFolder = { path: process.cwd(), users: "unnamed" },
): FolderApp {
  const { config, variable } = loaded;
  const configured = Object.keys(config.agents);
  const redactor = redactorOf(loaded);
  const agents = new FolderAgents({ config, env: variable, definitions: [], configured });
  return {
    store,
    runs: store.runs,
    files: configuredFileBoundary(loaded, folder, () => store.upkeep.checkInPlace()),
    config,
    loaded,
    clock: systemClock,
    newId: createIdSource(),
    redactor,
    agents,
    models: createModels({ config, env: variable }),
    embeddings: openEmbeddings({ ...notRunning, store, redactor }, loaded),
    hooks: new HookRegistry(() => undefined),
    turns: new Map(),
    tools: {
      offered: (agent, session, _active, run = null) => toolsByConfig(config, agents, agent, session, run),
    },
  };
}

/** Returns the tools that a turn would be offered, as far as they are known without starting an MCP server. */
async function toolsByConfig(
  config: Config,
  agents: Agents,
  agent: Agent,
  session: Pick<SessionRecord, "meta">,
  run: Run | null,
): Promise<OfferedTools> {
  const servers = Object.keys(config.mcpServers).map((name) => ({
    from: mcpSourceName(name),
    reach: mcpReach(name),
    tools: null,
  }));
  const layers = toolLayers(agent, run, session, (agentId) => agents.find(agentId)?.subagents ?? null);
  return offeredTools([{ from: "Skein", tools: await listedSessionTools() }, ...servers], layers);
}

async function listedSessionTools(): Promise<readonly ListedTool[]> {
  const { sessionToolTable } = await import("../tools/all.ts");
  const { sessionsGroup } = await import("../tools/tool-adapters.ts");
  const { modelParameters } = await import("../tools/session-tool.ts");
  return sessionToolTable.map(({ name, description, parameters }) => ({
    name,
    description,
    inputSchema: modelParameters(parameters),
    groups: [sessionsGroup],
  }));
}
