import { createHash } from "node:crypto";

/** Returns an ID in UUID format (version 8) that is derived from its parts. */
export function hashedId(...parts: readonly string[]): string {
  const hex = createHash("sha256").update(JSON.stringify(parts)).digest("hex");
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(18, 20),
    hex.slice(20, 32),
  ].join("-");
}

/** Returns the default entry ID for a run's input. The ID is known before the entry is written. */
export function inputEntryId(runId: string): string {
  return hashedId("entry", runId);
}

/** Returns the same ID for the same values, so that repeating a tool call or a delivery has no additional effect. */
export function deliveryId(sessionId: string, entryId: string, toolCallId: string, part = ""): string {
  const text = JSON.stringify([sessionId, entryId, toolCallId, part]);
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/** Returns the ID of the first run in the child that a call spawns from a session. */
export function childRunId(parentUid: string, callId: string): string {
  return hashedId("child run", parentUid, callId);
}

/**
 * Returns the ID of the entry that holds the result of the call that started a run. If the entry exists, the reply has
 * been written.
 */
export function resultEntryId(runId: string): string {
  return `${runId}-result`;
}
