import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { agentSettings } from "../config/agent-settings.ts";
import { configNames } from "../config/find-file.ts";
import type { LoadedConfig } from "../config/load.ts";
import { defaultNamespace } from "../core/namespace.ts";
import { userSegment } from "../core/path-segment.ts";
import type { FileBoundaryOptions, ProcessFolder } from "../file-access/file-boundary.ts";
import { FileBoundary } from "../file-access/file-boundary.ts";
import { agentFolder, attachmentsFolder, homeOf } from "../store/files/layout.ts";

export interface BoundaryParts
  extends Pick<FileBoundaryOptions, "agent" | "process" | "checkRootInPlace" | "report"> {
  readonly loaded: Pick<LoadedConfig, "config" | "root" | "file">;
  /** The folder for attachments if the store is in memory. Defaults to the root folder. */
  readonly memoryAttachments?: FileBoundaryOptions["attachments"];
}

/** Creates the file boundary for a root folder. The folder's store does not have to be open. */
export function createFileBoundary(parts: BoundaryParts): FileBoundary {
  const { loaded, memoryAttachments, agent, process, checkRootInPlace, report } = parts;
  const { path: root, kind } = loaded.config.store;
  // With a shared database, a child might run on a different machine from the one that wrote its attachments.
  const hasFiles = memoryAttachments === undefined && kind === "files";
  const placeOf = (userId: string | null, agentId: string) => ({
    home: homeOf(defaultNamespace, userId),
    agentId,
  });
  return new FileBoundary({
    rootFolders: memoryAttachments === undefined ? [...new Set([root, loaded.root])] : [],
    agentFolder: (userId, agentId) =>
      memoryAttachments === undefined ? agentFolder(root, placeOf(userId, agentId)) : null,
    attachments:
      memoryAttachments ??
      ((userId, agentId, sessionId) =>
        hasFiles ? attachmentsFolder(root, placeOf(userId, agentId), sessionId) : null),
    configurationNames: [...configNames, ".env"],
    configurationFiles: loaded.file === null ? [] : [loaded.file, join(dirname(loaded.file), ".env")],
    agent,
    process,
    checkRootInPlace,
    report,
  });
}

/**
 * Like `createFileBoundary`, but with only the configured agents. Reports nothing, because runs report the same
 * problems.
 */
export function configuredFileBoundary(
  loaded: BoundaryParts["loaded"],
  process: ProcessFolder,
  checkRootInPlace: () => void = () => undefined,
): FileBoundary {
  const { config } = loaded;
  return createFileBoundary({
    loaded,
    agent: (agentId) => agentSettings(config, agentId),
    process: { ...process, path: resolve(process.path) },
    checkRootInPlace,
    report: () => undefined,
  });
}

/** Keeps the attachments of in-memory sessions in a temporary folder, which is removed together with the sessions. */
export class ScratchFolder {
  #folder: string | null = null;

  /** A user's folder cannot collide with the unnamed user's, because no encoded name starts with a dot. */
  attachments(userId: string | null, agentId: string, sessionId: string): string {
    // Created when the first attachment is stored, because most sessions have none.
    this.#folder ??= join(tmpdir(), `skein-attachments-${randomUUID()}`);
    return join(this.#folder, userId === null ? ".nobody" : userSegment(userId), agentId, sessionId);
  }

  async close(): Promise<void> {
    const folder = this.#folder;
    this.#folder = null;
    if (folder !== null) await rm(folder, { recursive: true, force: true });
  }
}
