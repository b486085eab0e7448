import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import type { SessionTree } from "./core/tree.ts";
import type { SessionRecord } from "./store/contract.ts";
import { sessionPaths, workDbName } from "./store/files/layout.ts";
import { readSessionFile } from "./store/files/read-session-file.ts";
import type { FilesStore } from "./store/files/store.ts";
import { openFilesStore } from "./store/files/store.ts";

/** The composition root: the only file that knows concrete stores and runtimes. */

export { repairSessionFile } from "./store/files/lone-file.ts";
export { readSessionFile } from "./store/files/read-session-file.ts";
export type { CheckFinding, FilesStore, Progress } from "./store/files/store.ts";

export interface FolderOptions {
  readonly root: string;
  readonly durability?: "full" | "os";
  readonly lockTimeoutMs?: number;
  /** Told, in a sentence, what opening had to put right. */
  report?(note: string): void;
}

/** Opens the store in a folder; makes the folder where it is not there. */
export async function openFolder(options: FolderOptions): Promise<FilesStore> {
  const { report, ...settings } = options;
  const store = await openFilesStore({
    ...settings,
    ...(report === undefined ? {} : { report: ({ file, note }) => report(`${file}: ${note}`) }),
  });
  return Object.assign(store, { root: options.root }) as FilesStore;
}

/** Whether somebody has kept sessions in a folder; one that holds other things is not to be littered. */
export function holdsSessions(root: string): boolean {
  if (existsSync(join(root, workDbName))) return true;
  const homes = ["agents/*/sessions", "users/*/agents/*/sessions"];
  return globSync(homes, { cwd: root }).length > 0;
}

type Placed = Pick<SessionRecord, "userId" | "agentId" | "sessionId">;

/** The working set of a session in a folder: what pi and others open. */
export function transcriptPath(root: string, session: Placed): string {
  return sessionPaths(root, session, session.sessionId).working;
}

/** Everything that was ever said in a session, with its damage, read at once. */
export function readLog(root: string, session: Placed): Promise<SessionTree> {
  return readSessionFile(logPath(root, session));
}

export function logPath(root: string, session: Placed): string {
  return sessionPaths(root, session, session.sessionId).log;
}
