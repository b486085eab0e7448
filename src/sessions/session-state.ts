import { present } from "../core/present.ts";
import type { PatchedPayload, SessionStatePayload } from "../protocol/session-changes.ts";
import type { SessionRecord } from "../store/contract.ts";

/** Who is told: folders of the machine are an admin's to know. */
export interface StateReader {
  readonly isAdmin: boolean;
}

/** A session as methods that change it answer. */
export function sessionState(record: SessionRecord, { isAdmin }: StateReader): SessionStatePayload {
  const { key, sessionId, kind, version, meta, name, cwd, createdAt, updatedAt } = record;
  return present({
    key,
    sessionId,
    kind,
    version,
    label: meta.label,
    displayName: meta.displayName ?? name,
    archived: meta.archived === true ? true : null,
    cwd: isAdmin ? cwd : null,
    createdAt,
    updatedAt,
  });
}

/** The same, with everything that `sessions.patch` can change. */
export function patchedState(record: SessionRecord, reader: StateReader): PatchedPayload {
  const { model, thinkingLevel, verboseLevel, sendPolicy } = record.meta;
  return {
    ...sessionState(record, reader),
    ...present({ model, thinkingLevel, verboseLevel, sendPolicy }),
  };
}
