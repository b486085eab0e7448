import { resolveSession } from "../../sessions/current-session.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { noSuchSession } from "./no-such-session.ts";
import type { Folder } from "./with-folder.ts";

/** Something with a slash, or ending in .jsonl, is a file; everything else is a reference. */
export function isFileName(name: string): boolean {
  return /[/\\]|\.jsonl$/.test(name);
}

/** The session that a reference means, or an error that says where was looked. */
export async function findSession(folder: Folder, name: string): Promise<SessionRecord> {
  const { store, scope, asker, toType } = folder;
  const found = await resolveSession(store.sessions, scope, asker, name, { prefix: true });
  if (found !== null) return found;
  const looked = { place: store.root, asker, reader: scope, userId: scope.userId ?? null, toType };
  throw noSuchSession(looked, name, await store.sessions.trashed(scope));
}
