import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import type { SessionTree } from "./core/tree.ts";
import type { SessionRecord } from "./store/contract.ts";
import type { SessionPaths } from "./store/files/layout.ts";
import { homeOf, sessionPaths, usersNamespace, workDbName } from "./store/files/layout.ts";
import { readSessionFile } from "./store/files/read-session-file.ts";
import type { FilesStore } from "./store/files/store.ts";
import { openFilesStore } from "./store/files/store.ts";

/** The composition root: the only file that knows concrete stores and runtimes. */

export type { CheckFinding, Progress } from "./store/files/check.ts";
export { repairSessionFile } from "./store/files/lone-file.ts";
export { readSessionFile } from "./store/files/read-session-file.ts";
export type { FilesStore } from "./store/files/store.ts";

export interface FolderOptions {
  readonly root: string;
  readonly durability?: "full" | "os";
  readonly lockTimeoutMs?: number;
  /** Told, in a sentence, what opening had to put right. */
  report?(note: string): void;
  /** Looks whether the databases are sound before they are used. */
  readonly verify?: boolean;
}

/** Opens the store in a folder, for a process that does one thing and ends; makes the folder where it is not there. */
export async function openFolder(options: FolderOptions): Promise<FilesStore> {
  const { report, ...settings } = options;
  return openFilesStore({
    ...settings,
    index: "in place",
    ...(report === undefined ? {} : { report: ({ file, note }) => report(`${file}: ${note}`) }),
  });
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
  return pathsOf(root, session).working;
}

/** Everything that was ever said in a session, its damage too, read at once. */
export function readLog(root: string, session: Placed): Promise<SessionTree> {
  return readSessionFile(logPath(root, session));
}

export function logPath(root: string, session: Placed): string {
  return pathsOf(root, session).log;
}

function pathsOf(root: string, { userId, agentId, sessionId }: Placed): SessionPaths {
  return sessionPaths(root, { home: homeOf(usersNamespace, userId), agentId }, sessionId);
}
