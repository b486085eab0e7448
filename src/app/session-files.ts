import { dirname, join } from "node:path";
import type { SessionTree } from "../core/tree.ts";
import type { SessionRecord } from "../store/contract.ts";
import { readWhole, realDisk } from "../store/files/disk.ts";
import { readSessionFile } from "../store/files/lone-file.ts";
import type { FilesStore } from "../store/files/store.ts";
import { noSuchSession } from "../store/rules.ts";

type Placed = Pick<SessionRecord, "userId" | "sessionId">;

/** The working set of a session in a folder: what pi and others open. `null`: it was removed a moment ago, as happens to lists. */
export function transcriptPath({ upkeep }: FilesStore, { userId, sessionId }: Placed): string | null {
  return upkeep.files(userId === null ? {} : { userId }, sessionId)?.working ?? null;
}

/** Whether a session is in the folder, and not in another store that a call named. */
export function isInFiles({ upkeep }: FilesStore, { userId, sessionId }: Placed): boolean {
  return upkeep.files(userId === null ? {} : { userId }, sessionId) !== null;
}

/** Everything that was ever said in a session, its damage too, read in slices. */
export function readLog(store: FilesStore, session: Placed, signal?: AbortSignal): Promise<SessionTree> {
  return readSessionFile(logPath(store, session), signal);
}

export function logPath(store: FilesStore, session: Placed): string {
  return filesOf(store, session).log;
}

/** The blobs of a session, read when they are asked for. */
export function readBlobs(store: FilesStore, session: Placed): (sha256: string) => Uint8Array | null {
  const folder = join(dirname(dirname(logPath(store, session))), "blobs");
  return (sha256) => (/^[0-9a-f]{64}$/.test(sha256) ? readWhole(realDisk, join(folder, sha256)) : null);
}

function filesOf({ upkeep }: FilesStore, { userId, sessionId }: Placed): { log: string; working: string } {
  return upkeep.files(userId === null ? {} : { userId }, sessionId) ?? noSuchSession(sessionId);
}
