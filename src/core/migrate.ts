import { currentVersion, entryProblem, headerProblem } from "./entries.ts";
import { isUsableBlock } from "./messages.ts";
import { isRecord } from "./shape.ts";

/** What earlier versions wrote, in today's words. In memory: the file is not touched. */

/** Where a line without an id hangs: version 1 had neither ids nor parents. */
export interface LinePlace {
  /** For a line that has none: by its line number, so the same file gives the same ids each time. */
  readonly newId: string;
  /** The id of the entry on the nearest usable line before. */
  readonly previousId: string | null;
  /** The id of the entry that version 1 calls by this index (the header is 0), if it comes earlier. */
  idAtIndex(index: number): string | null;
}

/** The last moment that a Date can hold. */
const latestTime = 8.64e15;

/** The same object when there is nothing to do. */
export function migrateEntry(value: Record<string, unknown>, place: LinePlace): Record<string, unknown> {
  return renameHookRole(keptIndexToId(giveId(value, place), place));
}

function giveId(value: Record<string, unknown>, place: LinePlace): Record<string, unknown> {
  if (value.id !== undefined && value.id !== null) {
    return value.parentId === undefined ? { ...value, parentId: place.previousId } : value;
  }
  const { type, timestamp, id: _id, parentId: _parentId, ...rest } = value;
  return { type, id: place.newId, parentId: place.previousId, timestamp, ...rest };
}

const idFields = ["id", "parentId", "targetId", "firstKeptEntryId", "fromId"];

/** IDs that are numbers, as texts. The same object when there are none. */
export function textIds(value: Record<string, unknown>): Record<string, unknown> {
  const numeric = idFields.filter((field) => typeof value[field] === "number");
  if (numeric.length === 0) return value;
  return { ...value, ...Object.fromEntries(numeric.map((field) => [field, String(value[field])])) };
}

/** A header that is not quite one: a field that cannot be used is left out, and the version is read as a number. */
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

/** A field beside it must not cost the kind: what another session said would pass for a person's word. */
function usableProvenance(provenance: Record<string, unknown>): Record<string, unknown> {
  const isUsable = ([field, value]: readonly [string, unknown]) => {
    if (field === "hops") return Number.isFinite(value);
    if (field === "verbatim") return typeof value === "boolean";
    return !provenanceTexts.includes(field) || typeof value === "string";
  };
  return Object.fromEntries(Object.entries(provenance).filter(isUsable));
}

/** Fields of entries and messages that only say how something came about. */
const sideFields = new Set([
  ...["tokensBefore", "fromHook", "fromId", "display", "label", "name", "usage", "provider", "model", "api"],
  ...["stopReason", "errorMessage", "timestamp", "provenance", "skein", "toolName", "isError", "exitCode"],
  ...["cancelled", "truncated", "fullOutputPath", "excludeFromContext"],
]);

/** Takes away fields that keep an entry from being used, but for those that are what it says. */
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
