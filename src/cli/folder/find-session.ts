import { SkeinError } from "../../core/errors.ts";
import { resolveReference } from "../../core/references.ts";
import { trashedAs } from "../../sessions/find-trashed.ts";
import type { SessionRecord } from "../../store/contract.ts";
import type { Folder } from "./with-folder.ts";

/** Something with a slash, or ending in .jsonl, is a file; everything else is a reference. */
export function isFileName(name: string): boolean {
  return /[/\\]|\.jsonl$/.test(name);
}

/** The session that a reference means, or an error that says where was looked. */
export async function findSession(folder: Folder, name: string): Promise<SessionRecord> {
  const { store, scope, asker } = folder;
  const found = await resolveReference(name, asker, (lookup) => store.sessions.find(scope, lookup), {
    prefix: true,
  });
  if (found !== null) return found;
  const inTrash = trashedAs(await store.sessions.trashed(scope), name, asker).length > 0;
  const next = inTrash
    ? `It is in the trash: ${folder.toType("sessions", "restore", name)}`
    : `Looked in ${placeOf(folder)}; see ${folder.toType("sessions", "ls")}`;
  throw new SkeinError("not_found", { what: "Session", name, advice: next });
}

function placeOf({ store, scope, asker }: Folder): string {
  const who = scope.userId === undefined ? "the unnamed user" : `user ${scope.userId}`;
  const whose = scope.agentId === undefined ? `as agent ${asker.agentId} of` : `in agent ${asker.agentId} of`;
  return `${store.root} ${whose} ${who}`;
}
