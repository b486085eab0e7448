import { isRecord } from "./shape.ts";

/** What earlier versions wrote, in today's words. In memory: the file is not touched. */

/** Where a line without an id hangs: version 1 had neither ids nor parents. */
export interface LinePlace {
  readonly line: number;
  /** The id of the entry on the nearest usable line before. */
  readonly previousId: string | null;
  /** The id of the entry that version 1 calls by this index (the header is 0), if it comes earlier. */
  idAtIndex(index: number): string | null;
}

/** The id of a line that has none: by its line number, so the same file gives the same ids each time. */
function lineId(line: number): string {
  return `line-${line}`;
}

/** The same object when there is nothing to do. */
export function migrateEntry(value: Record<string, unknown>, place: LinePlace): Record<string, unknown> {
  return renameHookRole(keptIndexToId(giveId(value, place), place));
}

function giveId(value: Record<string, unknown>, place: LinePlace): Record<string, unknown> {
  if (value.id !== undefined) return value;
  const { type, timestamp, ...rest } = value;
  return { type, id: lineId(place.line), parentId: place.previousId, timestamp, ...rest };
}

function keptIndexToId(value: Record<string, unknown>, place: LinePlace): Record<string, unknown> {
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
 * A second chance for an entry that is not quite of its type: `null` counts as absent, and a bare string as one
 * text block, as other programs write them.
 */
export function normalizeEntry(value: Record<string, unknown>): Record<string, unknown> {
  const entry = dropNulls(value);
  if (entry.parentId === undefined) entry.parentId = null;
  if (typeof entry.timestamp !== "string") entry.timestamp = messageTime(entry.message);
  if (isRecord(entry.message)) entry.message = normalizeMessage(entry.message);
  return entry;
}

function normalizeMessage(value: Record<string, unknown>): Record<string, unknown> {
  const message = dropNulls(value);
  const asBlocks = message.role === "assistant" || message.role === "toolResult";
  if (message.content === undefined) message.content = [];
  if (asBlocks && typeof message.content === "string") {
    message.content = message.content === "" ? [] : [{ type: "text", text: message.content }];
  }
  if (Array.isArray(message.content)) {
    message.content = message.content.map((block) => (isRecord(block) ? dropNulls(block) : block));
  }
  return message;
}

/** Fields of ours that may be absent; a `null` in any other field is somebody's value, and stays. */
const optionalFields = new Set(
  [
    "cwd parentSession skein version timestamp provenance api provider model usage stopReason errorMessage",
    "toolName details isError exitCode cancelled truncated fullOutputPath excludeFromContext display",
    "firstKeptEntryId tokensBefore fromHook fromId label name content textSignature thinkingSignature",
    "thoughtSignature redacted",
  ].flatMap((names) => names.split(" ")),
);

export function dropNulls(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).filter(([field, each]) => each !== null || !optionalFields.has(field)),
  );
}

function messageTime(message: unknown): string {
  const time = isRecord(message) ? message.timestamp : undefined;
  const inRange = typeof time === "number" && Math.abs(time) <= 8.64e15;
  return new Date(inRange ? time : 0).toISOString();
}
