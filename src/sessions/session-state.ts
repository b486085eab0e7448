import { present } from "../core/present.ts";
import type { SessionStatePayload } from "../protocol/session-changes.ts";
import type { SessionRecord } from "../store/contract.ts";

/** A session as methods that change it answer. */
export function sessionState(record: SessionRecord): SessionStatePayload {
  const { key, sessionId, kind, version, meta, name, cwd, createdAt, updatedAt } = record;
  return present({
    key,
    sessionId,
    kind,
    version,
    label: meta.label,
    displayName: meta.displayName ?? name,
    archived: meta.archived === true ? true : null,
    cwd,
    createdAt,
    updatedAt,
  });
}
