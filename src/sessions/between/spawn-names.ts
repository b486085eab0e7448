import { createHash } from "node:crypto";
import { childRunId, hashedId } from "../../core/hashed-id.ts";
import { formatKey } from "../../core/keys.ts";
import { cutText } from "../../core/text.ts";
import type { SessionRecord } from "../../store/contract.ts";

/** The names of a child. They follow from the call that spawns it, so that the same call again finds the first one's. */
export interface SpawnNames {
  readonly spawnId: string;
  readonly key: string;
  readonly sessionId: string;
  readonly runId: string;
}

const longestLabel = 512;

export function spawnNames(
  parent: SessionRecord,
  callId: string,
  agentId: string,
  runtime: "subagent" | "acp",
): SpawnNames {
  // The parent's uid keeps two users with one idempotency key apart: spawn ids are unique in the store.
  const spawnId = createHash("sha256")
    .update(JSON.stringify([parent.uid, callId]))
    .digest("hex")
    .slice(0, 16);
  return {
    spawnId,
    key: formatKey(
      runtime === "acp"
        ? { form: "acp", agentId, spawnId }
        : { form: "subagent", agentId, parentSessionId: parent.sessionId, spawnId },
    ),
    sessionId: hashedId("child session", parent.uid, callId),
    runId: childRunId(parent.uid, callId),
  };
}

/** A label that others may have already: as it is, then with ` (2)`, ` (3)` …, within the longest that there may be. */
export function numberedLabel(label: string, number: number): string {
  return withEnding(label, number === 1 ? "" : ` (${number})`);
}

/** A label that nobody else has, whatever others have. */
export function markedLabel(label: string, spawnId: string): string {
  return withEnding(label, ` (${spawnId.slice(0, 8)})`);
}

/** Whether a child's label is one that its parent gave, or what was made of it because others may have it. */
export function isGivenLabel(label: string, given: string, spawnId: string): boolean {
  if (label === given || label === markedLabel(given, spawnId)) return true;
  const number = Number(/ \((\d{1,6})\)$/.exec(label)?.[1]);
  return number > 1 && label === numberedLabel(given, number);
}

function withEnding(label: string, ending: string): string {
  return `${cutText(label, longestLabel - ending.length).trimEnd()}${ending}`;
}
