import { spawnIdOf } from "../../core/keys.ts";
import type { Lookup } from "../../core/references.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";

/** Returns the sessions that a lookup might mean, in any state. */
export function findRows(work: WorkDb, userId: string | null, lookup: Lookup): SessionRow[] {
  const one = (row: SessionRow | null) => (row === null ? [] : [row]);
  switch (lookup.by) {
    case "key":
      return one(work.byKey(userId, lookup.key));
    case "sessionId":
      return one(work.byId(userId, lookup.sessionId));
    case "uid":
      return one(work.byUid(lookup.uid)).filter((row) => row.userId === userId);
    case "label":
      return one(work.byLabel(userId, lookup.agentId, lookup.label));
    case "spawnId":
      return work.bySpawnId(userId, lookup.spawnId).filter(({ key }) => spawnIdOf(key) === lookup.spawnId);
    case "prefix":
      return work.byIdPrefix(userId, lookup.prefix);
  }
}
