import { entryProblem, isRecord, isUsableBlock } from "./shape.ts";

/** What earlier versions wrote, in today's words. In memory: the file is not touched. */

/** Where a line without an id hangs: version 1 had neither ids nor parents. */
export interface LinePlace {
  readonly line: number;
  /** The id of the entry on the nearest usable line before. */
  readonly previousId: string | null;
  /** The id of the entry that version 1 calls by this index (the header is 0), if it comes earlier. */
  idAtIndex(index: number): string | null;
}

/** The last moment that a Date can hold. */
const latestTime = 8.64e15;

/** The id of a line that has none: by its line number, so the same file gives the same ids each time. */
function lineId(line: number): string {
  return `line-${line}`;
}

/** The same object when there is nothing to do. */
export function migrateEntry(value: Record<string, unknown>, place: LinePlace): Record<string, unknown> {
  return renameHookRole(keptIndexToId(giveId(value, place), place));
}

function giveId(value: Record<string, unknown>, place: LinePlace): Record<string, unknown> {
  if (value.id !== undefined && value.id !== null) return value;
  const { type, timestamp, id: _id, parentId: _parentId, ...rest } = value;
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
 * A second chance for an entry that is not quite of its type, as other programs write them: `null` counts as absent,
 * a bare string as a text block, a number as a time; a block that cannot be used, and a field that only says how a
 * message came about, are left out rather than the message.
 */
export function normalizeEntry(value: Record<string, unknown>): Record<string, unknown> {
  const entry = dropNulls(value);
  if (entry.parentId === undefined) entry.parentId = null;
  if (typeof entry.timestamp !== "string") entry.timestamp = timeText(entry.timestamp, entry.message);
  if (entry.type === "message" && isRecord(entry.message)) {
    entry.message = normalizeMessage(entry.message);
    dropUnusable(entry, entry.message as Record<string, unknown>);
  }
  return entry;
}

const rolesWithContent = ["user", "assistant", "toolResult", "custom", "system"];

function normalizeMessage(value: Record<string, unknown>): Record<string, unknown> {
  const message = dropNulls(value);
  if (isRecord(message.provenance)) message.provenance = usableProvenance(message.provenance);
  if (!rolesWithContent.includes(String(message.role))) return message;
  const asBlocks = message.role === "assistant" || message.role === "toolResult";
  const { content = [] } = message;
  if (asBlocks && typeof content === "string") message.content = content === "" ? [] : [textBlock(content)];
  else if (!Array.isArray(content)) message.content = content;
  else {
    message.content = content
      .map((block) =>
        typeof block === "string" ? textBlock(block) : isRecord(block) ? dropNulls(block) : block,
      )
      .filter((block) => isUsableBlock(message.role, block));
  }
  return message;
}

const provenanceTexts = ["sourceSessionKey", "sourceChannel", "sourceTool", "rootId", "deliveryId"];

/** A field beside it must not cost the kind: what another session said would pass for a person's word. */
function usableProvenance(provenance: Record<string, unknown>): Record<string, unknown> {
  const isUsable = ([field, value]: readonly [string, unknown]) => {
    if (field === "hops") return Number.isFinite(value);
    if (field === "verbatim") return typeof value === "boolean";
    return !provenanceTexts.includes(field) || typeof value === "string";
  };
  return Object.fromEntries(Object.entries(provenance).filter(isUsable));
}

/** Takes away fields that keep a message from being used, but for those that are what it says. */
function dropUnusable(entry: Record<string, unknown>, message: Record<string, unknown>): void {
  const essential = ["role", "content", "toolCallId", "command", "output", "customType"];
  for (let tries = Object.keys(message).length; tries > 0; tries--) {
    const field = /^message\.(\w+)/.exec(entryProblem(entry) ?? "")?.[1];
    if (field === undefined || essential.includes(field)) return;
    delete message[field];
  }
}

function textBlock(text: string): { type: string; text: string } {
  return { type: "text", text };
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

/** A time as text: from a number, or from the message, or none. */
function timeText(time: unknown, message: unknown): string {
  const known = [time, isRecord(message) ? message.timestamp : undefined].find(
    (each) => typeof each === "number" && Math.abs(each) <= latestTime,
  );
  return new Date(typeof known === "number" ? known : 0).toISOString();
}
