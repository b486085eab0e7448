import { currentVersion, entryProblem, headerProblem } from "./entries.ts";
import { isRecord } from "./is-record.ts";
import { isUsableBlock } from "./messages.ts";

// Entries from earlier versions are migrated in memory. The file is not changed.

/** Provides the ID and the parent for a line that lacks them, as in version 1. */
export interface LineNeighbors {
  /**
   * The ID to assign to a line that has none. It is derived from the line number so that a file always gets the same
   * IDs.
   */
  newId(): string;
  /** The ID of the nearest usable entry before this line. */
  previousId(): string | null;
  /** The ID of the earlier entry with this index in version 1 (the header is 0). */
  idAtIndex(index: number): string | null;
}

/** The latest time that a Date can represent. */
const latestTime = 8.64e15;

/** Returns the same object if nothing changes. */
export function migrateEntry(value: Record<string, unknown>, place: LineNeighbors): Record<string, unknown> {
  return renameHookRole(keptIndexToId(giveId(value, place), place));
}

function giveId(value: Record<string, unknown>, place: LineNeighbors): Record<string, unknown> {
  if (value.id !== undefined && value.id !== null) {
    return value.parentId === undefined ? { ...value, parentId: place.previousId() } : value;
  }
  const { type, timestamp, id: _id, parentId: _parentId, ...rest } = value;
  return { type, id: place.newId(), parentId: place.previousId(), timestamp, ...rest };
}

const idFields = ["id", "parentId", "targetId", "firstKeptEntryId", "fromId"];

/** Converts numeric IDs to strings. Returns the same object if there are none. */
export function textIds(value: Record<string, unknown>): Record<string, unknown> {
  if (!idFields.some((field) => typeof value[field] === "number")) return value;
  const numeric = idFields.filter((field) => typeof value[field] === "number");
  return { ...value, ...Object.fromEntries(numeric.map((field) => [field, String(value[field])])) };
}

/** Makes an invalid header usable by dropping invalid fields and converting the version to a number. */
export function normalizeHeader(value: Record<string, unknown>): Record<string, unknown> {
  const header = textIds(dropNulls(value));
  if (header.version !== undefined && typeof header.version !== "number") {
    header.version = /^\d+$/.test(String(header.version)) ? Number(header.version) : currentVersion;
  }
  for (const field of ["timestamp", "cwd", "parentSession", "skein"]) {
    if (headerProblem(header)?.startsWith(`${field} `)) delete header[field];
  }
  return header;
}

function keptIndexToId(value: Record<string, unknown>, place: LineNeighbors): Record<string, unknown> {
  if (value.type !== "compaction" || typeof value.firstKeptEntryIndex !== "number") return value;
  const { firstKeptEntryIndex, ...rest } = value;
  if (rest.firstKeptEntryId !== undefined) return rest;
  const firstKeptEntryId = place.idAtIndex(firstKeptEntryIndex);
  return firstKeptEntryId === null ? rest : { ...rest, firstKeptEntryId };
}

function renameHookRole(value: Record<string, unknown>): Record<string, unknown> {
  const { message } = value;
  if (value.type !== "message" || !isRecord(message) || message.role !== "hookMessage") return value;
  return { ...value, message: { ...message, role: "custom" } };
}

/**
 * Repairs an entry that is invalid because of how other programs write it. `null` is treated as absent, a string as a
 * text block, and a number as a time. Invalid blocks and invalid fields other than content are dropped. The rest of the
 * message is kept.
 */
export function normalizeEntry(value: Record<string, unknown>): Record<string, unknown> {
  const entry = dropNulls(value);
  if (entry.parentId === undefined) entry.parentId = null;
  if (typeof entry.timestamp !== "string") entry.timestamp = timeText(entry.timestamp, entry.message);
  if (entry.type === "message" && isRecord(entry.message)) entry.message = normalizeMessage(entry.message);
  dropUnusable(entry);
  return entry;
}

const rolesWithContent = ["user", "assistant", "toolResult", "custom", "system"];

function normalizeMessage(value: Record<string, unknown>): Record<string, unknown> {
  const message = dropNulls(value);
  if (typeof message.toolCallId === "number") message.toolCallId = String(message.toolCallId);
  if (isRecord(message.provenance)) message.provenance = usableProvenance(message.provenance);
  if (!rolesWithContent.includes(String(message.role))) return message;
  const asBlocks = message.role === "assistant" || message.role === "toolResult";
  const { content = [] } = message;
  if (asBlocks && typeof content === "string") message.content = content === "" ? [] : [textBlock(content)];
  else if (!Array.isArray(content)) message.content = content;
  else {
    message.content = content
      .map((block) =>
        typeof block === "string" ? textBlock(block) : isRecord(block) ? textIds(dropNulls(block)) : block,
      )
      .filter((block) => isUsableBlock(message.role, block));
  }
  return message;
}

const provenanceTexts = [
  ...["sourceSessionKey", "sourceChannel", "sourceTool", "sourcePeer", "sourcePeerName"],
  ...["rootId", "deliveryId"],
];

/**
 * Keeps `kind` even if another field is invalid. Otherwise, a message from another session would pass for a message
 * from a user.
 */
function usableProvenance(provenance: Record<string, unknown>): Record<string, unknown> {
  const isUsable = ([field, value]: readonly [string, unknown]) => {
    if (field === "hops") return Number.isFinite(value);
    if (field === "verbatim") return typeof value === "boolean";
    return !provenanceTexts.includes(field) || typeof value === "string";
  };
  return Object.fromEntries(Object.entries(provenance).filter(isUsable));
}

/** Fields in entries and messages other than content. */
const sideFields = new Set([
  ...["tokensBefore", "fromHook", "fromId", "display", "label", "name", "usage", "provider", "model", "api"],
  ...["stopReason", "errorMessage", "timestamp", "provenance", "skein", "toolName", "isError", "exitCode"],
  ...["cancelled", "truncated", "fullOutputPath", "excludeFromContext"],
]);

/** Drops invalid fields other than content. */
function dropUnusable(entry: Record<string, unknown>): void {
  const message = isRecord(entry.message) ? entry.message : {};
  for (let tries = Object.keys(entry).length + Object.keys(message).length; tries > 0; tries--) {
    const [, inMessage, field] = /^(message\.)?(\w+)/.exec(entryProblem(entry) ?? "") ?? [];
    if (field === undefined || !sideFields.has(field)) return;
    delete (inMessage === undefined ? entry : message)[field];
  }
}

function textBlock(text: string): { type: string; text: string } {
  return { type: "text", text };
}

/** Optional fields in Skein's schemas. In any other field, `null` is a value and is kept. */
const optionalFields = new Set(
  [
    "cwd parentSession skein version timestamp provenance api provider model usage stopReason errorMessage",
    "toolName details isError exitCode cancelled truncated fullOutputPath excludeFromContext display",
    "firstKeptEntryId tokensBefore fromHook fromId label name content textSignature thinkingSignature",
    "thoughtSignature redacted",
  ].flatMap((names) => names.split(" ")),
);

function dropNulls(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).filter(([field, each]) => each !== null || !optionalFields.has(field)),
  );
}

/** Returns the time as a string: from a number if there is one, otherwise from the message, otherwise 1970. */
function timeText(time: unknown, message: unknown): string {
  const known = [time, isRecord(message) ? message.timestamp : undefined].find(
    (each) => typeof each === "number" && Math.abs(each) <= latestTime,
  );
  return new Date(typeof known === "number" ? known : 0).toISOString();
}
