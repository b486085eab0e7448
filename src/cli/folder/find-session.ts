import { SkeinError } from "../../core/errors.ts";
import { displayKey, resolveReference } from "../../core/references.ts";
import type { SessionRecord, TrashedSession } from "../../store/contract.ts";
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
  const inTrash = (await trashedAs(folder, name)).length > 0;
  const next = inTrash
    ? `It is in the trash: ${folder.toType("sessions", "restore", name)}`
    : `Looked in ${placeOf(folder)}; see ${folder.toType("sessions", "ls")}`;
  throw new SkeinError("not_found", { what: "Session", name, advice: next });
}

/** The same in the trash, where several may have had one key. */
export async function findTrashed(folder: Folder, name: string): Promise<TrashedSession> {
  const found = await trashedAs(folder, name);
  const [first] = found;
  if (first !== undefined && found.length === 1) return first;
  if (first !== undefined) {
    const candidates = found.slice(0, 5).map(({ sessionId }) => sessionId);
    throw new SkeinError("ambiguous", { name, what: "session", candidates: candidates.join(", ") });
  }
  const advice = `Looked in the trash of ${placeOf(folder)}; see ${folder.toType("sessions", "ls", "--trash")}`;
  throw new SkeinError("not_found", { what: "Session", name, advice });
}

async function trashedAs({ store, scope, asker }: Folder, name: string): Promise<TrashedSession[]> {
  const trashed = await store.sessions.trashed(scope);
  const lowered = name.toLowerCase();
  const ways: ((each: TrashedSession) => boolean)[] = [
    ({ key }) => key === name || displayKey(key, asker) === name,
    ({ sessionId }) => sessionId.toLowerCase() === lowered,
    ({ label }) => label === name,
    ({ sessionId }) => sessionId.toLowerCase().startsWith(lowered),
  ];
  for (const way of ways) {
    const found = trashed.filter(way);
    if (found.length > 0) return found;
  }
  return [];
}

function placeOf({ store, scope, asker }: Folder): string {
  const who = scope.userId === undefined ? "the unnamed user" : `user ${scope.userId}`;
  const whose = scope.agentId === undefined ? `as agent ${asker.agentId} of` : `in agent ${asker.agentId} of`;
  return `${store.root} ${whose} ${who}`;
}
