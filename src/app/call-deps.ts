import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/sections/all.ts";
import { systemClock } from "../core/clock.ts";
import { createIdSource } from "../core/ids.ts";
import type { ProcessFolder } from "../file-access/file-boundary.ts";
import type { FolderApp, SkeinApp } from "../gateway/methods/dispatch.ts";
import type { Run } from "../runs/contract.ts";
import type { Agent } from "../sessions/agents.ts";
import { Agents } from "../sessions/agents.ts";
import type { App, SkeinStore } from "../sessions/app.ts";
import { HookRegistry } from "../sessions/hooks.ts";
import type { ListedTool, OfferedTools } from "../sessions/run-tools.ts";
import { offeredTools, toolLayers } from "../sessions/run-tools.ts";
import type { RequestApp } from "../sessions/show-request.ts";
import type { Skein } from "../sessions/skein.ts";
import { contextForModel } from "../sessions/xray.ts";
import type { SessionRecord } from "../store/contract.ts";
import { loadBlobs, readTree } from "../store/session-trees.ts";
import { configuredFileBoundary } from "./files.ts";
import { isInFiles, readBlobs, readLog } from "./folder.ts";
import { mcpReach, mcpSourceName } from "./mcp.ts";
import { createModels } from "./models.ts";
import { filesOf } from "./open-store.ts";
import { redactorOf } from "./redaction.ts";
import type { FolderStore } from "./runs.ts";

const defaultAgentId = "main";

/** What methods stand on, in a folder that was opened with regard to runs. */
export function folderDeps(
  store: FolderStore,
  loaded: LoadedConfig,
  folder: ProcessFolder = { path: process.cwd(), users: "unnamed" },
): FolderApp {
  const files = configuredFileBoundary(loaded, folder, () => store.upkeep.checkInPlace());
  return {
    ...storeDeps(store),
    ...settingsDeps(loaded, { files }),
    defaultAgentId,
    showRequest: async (session, options) => {
      const { showRequest } = await import("../sessions/show-request.ts");
      return showRequest(requestAppOf(store, loaded), session, options);
    },
    runs: store.runs,
    pending: (sessionUid) => store.runs.pending(sessionUid),
  };
}

/** For a folder that no process runs: agents and models as the configuration has them, without hooks. */
function requestAppOf(store: FolderStore, { config, variable }: LoadedConfig): RequestApp {
  const configured = Object.keys(config.agents);
  const agents = new Agents({ config, env: variable, definitions: [], configured });
  return {
    store,
    runs: store.runs,
    config,
    agents,
    models: createModels({ config, env: variable }),
    hooks: new HookRegistry(() => undefined),
    clock: systemClock,
    turns: new Map(),
    tools: {
      offered: (agent, session, _active, run = null) => toolsByConfig(config, agents, agent, session, run),
    },
  };
}

/** The same on a Skein that is open. */
export function skeinDeps(skein: Skein, loaded: LoadedConfig, app: App): SkeinApp {
  const { runs, store } = app;
  return {
    ...app,
    ...storeDeps(store),
    ...settingsDeps(loaded, app),
    store,
    showRequest: (session, options) => skein.showRequest(session, options),
    defaultAgentId: skein.defaultAgentId,
    skein,
    runs,
    pending: async (sessionUid) => runs.pending(sessionUid),
  };
}

function settingsDeps(
  loaded: LoadedConfig,
  {
    files,
    clock = systemClock,
    newId = createIdSource(),
  }: Pick<FolderApp, "files"> & Partial<Pick<FolderApp, "clock" | "newId">>,
): Pick<FolderApp, "files" | "config" | "loaded" | "clock" | "newId" | "redactor" | "contextForModel"> {
  const { config } = loaded;
  return { files, config, loaded, clock, newId, redactor: redactorOf(loaded), contextForModel };
}

type StoreDeps = Omit<
  FolderApp,
  keyof ReturnType<typeof settingsDeps> | "runs" | "pending" | "showRequest" | "defaultAgentId"
>;

/** What only files have (paths, marks of changes) is absent in other stores; their sessions are read through the contract. */
function storeDeps(store: SkeinStore): StoreDeps {
  const { work, upkeep } = store;
  const files = filesOf(store);
  return {
    store,
    sessionAt: (userId, key) => work.find(userId, { key }),
    root: store.root ?? null,
    users: () => work.users(),
    everyUser: upkeep ?? null,
    changeMark: async () => (await upkeep?.changeMark()) ?? null,
    workMark: () => upkeep?.workMark() ?? null,
    logMark: (session) => upkeep?.logMark(session) ?? null,
    isErasePending: () => upkeep?.isErasePending() ?? false,
    transcriptPaths: (sessions) => upkeep?.workingSets(sessions) ?? new Map(),
    readTree: (session, signal) =>
      files !== null && isInFiles(files, session)
        ? readLog(files, session, signal)
        : readTree(store, session, signal),
    blobs: async (session, tree) =>
      files !== null && isInFiles(files, session)
        ? readBlobs(files, session)
        : loadBlobs(store, session, tree),
  };
}

/** The same in a folder where nothing runs, by its configuration. */
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
  const { modelParameters } = await import("../tools/model-parameters.ts");
  return sessionToolTable.map(({ name, description, parameters }) => ({
    name,
    description,
    inputSchema: modelParameters(parameters),
    groups: [sessionsGroup],
  }));
}
