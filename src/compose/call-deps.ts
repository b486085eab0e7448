import type { LoadedConfig } from "../config/load.ts";
import { systemClock } from "../core/clock.ts";
import { createIdSource } from "../core/ids.ts";
import type { FolderDeps, SkeinDeps } from "../gateway/calls/contract.ts";
import type { RunStore } from "../runs/contract.ts";
import type { Skein } from "../sessions/skein/skein.ts";
import type { FilesStore } from "../store/files/store.ts";
import { contextForModel } from "./context-for-model.ts";
import { configuredFileBoundary } from "./file-boundary.ts";
import { toolsByConfig } from "./offered-tools.ts";
import { redactorOf } from "./redaction.ts";
import { readBlobs, readLog } from "./session-files.ts";
import { pendingIn, workIn } from "./settings.ts";

const defaultAgentId = "main";

/** What methods stand on, in a folder that was opened with regard to runs. */
export function folderDeps(
  store: FilesStore,
  loaded: LoadedConfig,
  processCwd: string = process.cwd(),
): FolderDeps {
  return {
    ...ground(store, loaded, processCwd),
    offeredTools: (session) => toolsByConfig(loaded, session),
    runs: workIn(store) ?? null,
    pending: (sessionUid) => pendingIn(store, sessionUid),
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
    offeredTools: (session) => skein.offeredTools(session),
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
): Omit<FolderDeps, "runs" | "pending" | "offeredTools"> {
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
