import type { LoadedConfig } from "../config/load.ts";
import { systemClock } from "../core/clock.ts";
import { createIdSource } from "../core/ids.ts";
import { isAcpKey } from "../core/keys.ts";
import type { FolderDeps, SkeinDeps } from "../gateway/calls/contract.ts";
import type { RunStore } from "../runs/contract.ts";
import { HookRegistry } from "../sessions/hooks.ts";
import type { Skein } from "../sessions/skein/skein.ts";
import type { FilesStore } from "../store/files/store.ts";
import { Agents } from "./agents.ts";
import { contextForModel } from "./context-for-model.ts";
import { shrinkLater } from "./engine.ts";
import { configuredFileBoundary } from "./file-boundary.ts";
import { createModels } from "./models.ts";
import { toolsByConfig } from "./offered-tools.ts";
import { redactorOf } from "./redaction.ts";
import { readBlobs, readLog } from "./session-files.ts";
import { openRunOf, pendingIn, runSettings, workIn } from "./settings.ts";
import type { ShowRequestDeps } from "./show-request.ts";

const defaultAgentId = "main";

/** What methods stand on, in a folder that was opened with regard to runs. */
export function folderDeps(
  store: FilesStore,
  loaded: LoadedConfig,
  processCwd: string = process.cwd(),
): FolderDeps {
  return {
    ...ground(store, loaded, processCwd),
    showRequest: async (session, options) => {
      const { showRequest } = await import("./show-request.ts");
      return showRequest(showingByConfig(store, loaded), session, options);
    },
    runs: workIn(store) ?? null,
    pending: (sessionUid) => pendingIn(store, sessionUid),
  };
}

/** For a folder that no process runs: agents and models as the configuration has them, without hooks. */
function showingByConfig(store: FilesStore, loaded: LoadedConfig): ShowRequestDeps {
  const { config, variable } = loaded;
  const configured = Object.keys(config.agents);
  const agents = new Agents({ config, env: variable, definitions: [], configured });
  return {
    store,
    config,
    models: createModels({ config, env: variable }),
    hooks: new HookRegistry(() => undefined),
    settings: runSettings(config),
    clock: systemClock,
    shrink: shrinkLater,
    turns: new Map(),
    agent: ({ key, agentId }) => (isAcpKey(key) ? null : agents.find(agentId)),
    tools: (agent, session, run) => toolsByConfig(config, agents, agent, session, run),
    isGiven: () => false,
    openRun: (session) => openRunOf(workIn(store), session),
  };
}

/** The same on a Skein that is open. */
export function skeinDeps(
  skein: Skein,
  loaded: LoadedConfig,
  parts: {
    readonly runs: Pick<RunStore, "work" | "pending">;
    readonly store: FilesStore;
    readonly processCwd?: string;
  },
): SkeinDeps {
  const { runs, store, processCwd = process.cwd() } = parts;
  return {
    ...ground(store, loaded, processCwd),
    showRequest: (session, options) => skein.showRequest(session, options),
    defaultAgentId: skein.defaultAgentId,
    skein,
    runs,
    pending: async (sessionUid) => runs.pending(sessionUid),
  };
}

function ground(
  store: FilesStore,
  loaded: LoadedConfig,
  processCwd: string,
): Omit<FolderDeps, "runs" | "pending" | "showRequest"> {
  const { config } = loaded;
  return {
    store,
    files: configuredFileBoundary(loaded, processCwd, () => store.upkeep.checkInPlace()),
    config,
    loaded,
    defaultAgentId,
    clock: systemClock,
    newId: createIdSource(),
    root: store.root,
    users: () => store.upkeep.users(),
    changeMark: () => store.upkeep.changeMark(),
    workMark: () => store.upkeep.workMark(),
    logMark: (session) => store.upkeep.logMark(session),
    isErasePending: () => store.upkeep.isErasePending(),
    sessionAt: (userId, key) => store.work.find(userId, { key }),
    transcriptPaths: (sessions) => store.upkeep.workingSets(sessions),
    readTree: (session, signal) => readLog(store, session, signal),
    blobs: (session) => readBlobs(store, session),
    redactor: redactorOf(loaded),
    contextForModel,
  };
}
