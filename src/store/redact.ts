import type { Entry } from "../core/entries.ts";
import { copiedFrom, isCorrupt, lineOf } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { stringifyJson } from "../core/json.ts";
import type { RawLine } from "../core/lines.ts";
import { splitLines } from "../core/lines.ts";
import { sameJson } from "../core/link-entries.ts";
import { parseSession } from "../core/parse-session.ts";
import type { Steps } from "../core/slices.ts";
import { isTombstone, RemovedTexts, redactedDamage, tombstoneOf } from "../core/tombstone.ts";
import type { SessionTree } from "../core/tree.ts";
import type { RemovedEntries } from "../runs/contract.ts";
import type { Redaction } from "./contract.ts";
import { entryText, entryTexts, isPartial, partialText } from "./search-text.ts";

/** Redaction of a session's lines. Has no side effects. Used by every store. */

type Line = Readonly<Record<string, unknown>>;

/** The content to remove: entries by ID, and all lines with the same content. */
export interface RedactionTarget {
  readonly ids: ReadonlySet<string>;
  readonly lines: readonly Line[];
  readonly texts: RemovedTexts;
}

/** Redacted lines, and the IDs of the redacted entries. */
export interface Tombstones {
  readonly bytes: Uint8Array;
  readonly entryIds: readonly string[];
}

/** A torn line is recognized only if it has at least this much text. */
const tellingLength = 24;
const leastTelling = 8;

/** Skein's own entry types that quote the conversation. All others are bookkeeping. */
const quotingTypes = ["skein.partial", "skein.notes"];

/** Returns the content to remove from the run state of these sessions. */
export function removedEntriesOf(
  { ids, lines, texts }: RedactionTarget,
  uids: readonly string[],
): RemovedEntries {
  const calls = lines.flatMap(({ message }) =>
    isRecord(message) && Array.isArray(message.content) ? message.content : [],
  );
  const toolCallIds = calls.filter((block) => isRecord(block) && block.type === "toolCall");
  return {
    uids: [...new Set(uids)],
    entryIds: ids,
    toolCallIds: new Set(toolCallIds.map(({ id }) => String(id))),
    texts,
  };
}

/** Rejects unknown IDs and entries without conversation content. */
export function checkRedactable(tree: SessionTree, entryIds: readonly string[]): void {
  for (const id of entryIds) {
    // Throws for an unknown ID.
    tree.parentOf(id);
    const entry = tree.entry(id);
    if (entry?.type !== "custom" || !entry.customType.startsWith("skein.")) continue;
    if (quotingTypes.includes(entry.customType)) continue;
    throw new SkeinError("invalid_arguments", {
      problem: `Entry ${id} is ${entry.customType}, which is internal session bookkeeping`,
      advice: "Change the session's metadata instead. Only conversation entries can be redacted",
    });
  }
}

/**
 * Finds the lines that contain the entries or copies of them on other branches. Tombstones are excluded. Throws if an
 * ID has no line.
 */
export function* findRedacted(bytes: Uint8Array, entryIds: ReadonlySet<string>): Steps<RedactionTarget> {
  const ids = yield* withRepeated(bytes, entryIds);
  const found = new Set<string>();
  const lines: Line[] = [];
  for (const { text, length } of splitLines(bytes)) {
    yield length;
    const line = mayHave(text, ids) ? lineIn(text) : null;
    if (line === null || typeof line.id !== "string" || !ids.has(line.id)) continue;
    found.add(line.id);
    if (!isTombstone(line)) lines.push(line);
  }
  for (const id of entryIds) {
    if (found.has(id)) continue;
    throw new SkeinError("internal", {
      problem: `the line of entry ${id}, which is to be redacted, was not found`,
    });
  }
  return yield* withPartials(bytes, { ids, lines, texts: removedTexts(lines) });
}

/** Adds streamed text that a run saved before its process crashed, if that text is part of the final text. */
function* withPartials(bytes: Uint8Array, { ids, lines, texts }: RedactionTarget): Steps<RedactionTarget> {
  const partials: Line[] = [];
  for (const { text, length } of splitLines(bytes)) {
    yield length;
    const line = text?.includes('"skein.partial"') === true ? lineIn(text) : null;
    const entry = line === null || isTombstone(line) ? null : entryIn(line);
    if (line === null || entry === null || !isPartial(entry) || ids.has(entry.id)) continue;
    if (texts.isRepeatedBy(partialText(entry))) partials.push(line);
  }
  if (partials.length === 0) return { ids, lines, texts };
  const all = [...lines, ...partials];
  return {
    ids: new Set([...ids, ...partials.map(({ id }) => String(id))]),
    lines: all,
    texts: removedTexts(all),
  };
}

function removedTexts(lines: readonly Line[]): RemovedTexts {
  const entries = lines.map(entryIn).filter((entry) => entry !== null);
  return new RemovedTexts(entries.flatMap(entryTexts));
}

/**
 * Replaces the lines of these entries with tombstones and keeps all other bytes. Returns `null` if no line matches. In
 * the session itself (`isItself`), a line matches if its ID does. In other sessions, its content must match too.
 */
export function* withTombstones(
  bytes: Uint8Array,
  sought: RedactionTarget,
  time: number,
  isItself: boolean,
): Steps<Tombstones | null> {
  const isSought = yield* seeker(sought, isItself);
  const repeated = isItself ? new Set<string>() : yield* repeatedElsewhere(bytes, isSought);
  const entryIds = new Set<string>();
  const pieces: Uint8Array[] = [];
  let copied = 0;
  for (const raw of splitLines(bytes)) {
    yield raw.length;
    const line = lineIn(raw.text);
    const isRepeated = typeof line?.id === "string" && repeated.has(line.id) && !isTombstone(line);
    const isGone = isRepeated || isSought(raw, line, bytes);
    const renamed = isGone || line === null ? null : withoutNames(line, sought.texts);
    if (!isGone && renamed === null) continue;
    if (isGone && typeof line?.id === "string") entryIds.add(line.id);
    const left = line === null ? redactedDamage : stringifyJson(renamed ?? tombstoneOf(line, time));
    pieces.push(bytes.subarray(copied, raw.offset), Buffer.from(left));
    copied = raw.offset + raw.length;
  }
  if (copied === 0) return null;
  return { bytes: Buffer.concat([...pieces, bytes.subarray(copied)]), entryIds: [...entryIds] };
}

/** Removes a name derived from redacted text. Returns `null` if there is none. */
function withoutNames(line: Line, texts: RemovedTexts): Line | null {
  const isNamedBy = (name: unknown) => typeof name === "string" && texts.isNamedBy(name);
  if (line.type === "session_info" && isNamedBy(line.name)) return { ...line, name: "" };
  if (line.type === "custom" && line.customType === "skein.meta" && isRecord(line.data))
    return isNamedBy(line.data.displayName) ? { ...line, data: { ...line.data, displayName: null } } : null;
  const { skein } = line;
  if (line.type !== "session" || !isRecord(skein) || !isRecord(skein.meta)) return null;
  const meta = withoutDisplayName(skein.meta, texts);
  return meta === null ? null : { ...line, skein: { ...skein, meta } };
}

/** Removes a display name derived from redacted text. Returns `null` if there is none. */
export function withoutDisplayName<T extends { readonly displayName?: unknown }>(
  { displayName, ...meta }: T,
  texts: RemovedTexts,
): Omit<T, "displayName"> | null {
  return typeof displayName === "string" && texts.isNamedBy(displayName) ? meta : null;
}

/** Adds entries in the same session that are copies or originals of these. */
function* withRepeated(bytes: Uint8Array, entryIds: ReadonlySet<string>): Steps<ReadonlySet<string>> {
  const linked = new Map<string, string[]>();
  for (const { text, length } of splitLines(bytes)) {
    yield length;
    const line = text?.includes('"copyOf"') === true ? lineIn(text) : null;
    const from = line === null ? null : copiedFrom(line);
    if (from === null || typeof line?.id !== "string") continue;
    linked.set(line.id, [...(linked.get(line.id) ?? []), from]);
    linked.set(from, [...(linked.get(from) ?? []), line.id]);
  }
  const all = new Set(entryIds);
  for (const id of all) for (const other of linked.get(id) ?? []) all.add(other);
  return all;
}

/**
 * Like `withRepeated`, but for another session that contains a copy. Within that session, the copy might have been
 * copied again.
 */
function* repeatedElsewhere(bytes: Uint8Array, isSought: Seeker): Steps<ReadonlySet<string>> {
  const here = new Set<string>();
  for (const raw of splitLines(bytes)) {
    yield raw.length;
    const line = lineIn(raw.text);
    if (typeof line?.id === "string" && isSought(raw, line, bytes)) here.add(line.id);
  }
  return here.size === 0 ? here : yield* withRepeated(bytes, here);
}

type Seeker = (raw: RawLine, line: Line | null, bytes: Uint8Array) => boolean;

function* seeker({ ids, lines }: Pick<RedactionTarget, "ids" | "lines">, isItself: boolean): Steps<Seeker> {
  const tokens = [...ids].map((id) => `"id":${JSON.stringify(id)}`);
  /** Grouped by text length, which is the same for equal JSON, so only a few lines need to be compared. */
  const said = new Map<number, Line[]>();
  const beginnings: string[] = [];
  for (const line of lines) {
    const content = contentOf(line);
    const length = stringifyJson(content).length;
    const same = said.get(length);
    if (same === undefined) said.set(length, [content]);
    else same.push(content);
    const beginning = beginningOf(line);
    if (beginning !== null) beginnings.push(beginning);
    yield length;
  }
  const isCopy = (line: Line) => {
    const content = contentOf(line);
    return (said.get(stringifyJson(content).length) ?? []).some((each) => sameJson(content, each));
  };
  return (raw, line, bytes) => {
    if (line === null) {
      const text =
        raw.text ?? Buffer.from(bytes.subarray(raw.offset, raw.offset + raw.length)).toString("utf8");
      const isNamed = isItself && tokens.some((token) => text.includes(token));
      return isNamed || beginnings.some((beginning) => text.includes(beginning));
    }
    if (line.type === "session" || isTombstone(line)) return false;
    // Version 1 has no IDs, so lines match by content.
    if ((line.id ?? null) === null) return isCopy(line);
    return typeof line.id === "string" && ids.has(line.id) && (isItself || isCopy(line));
  };
}

/** Returns the IDs of summaries that follow a redacted entry on any branch. These summaries might contain its text. */
function summariesBehind(tree: SessionTree, gone: ReadonlySet<string>): string[] {
  const behind = new Set<string>();
  const summaries: string[] = [];
  for (const { id, type } of tree.entries()) {
    const parent = tree.parentOf(id)?.id;
    if (!gone.has(id) && (parent === undefined || !behind.has(parent))) continue;
    behind.add(id);
    if (!gone.has(id) && (type === "compaction" || type === "branch_summary")) summaries.push(id);
  }
  return summaries;
}

export function redactionOf(
  done: readonly { readonly tree: SessionTree; readonly entryIds: readonly string[] }[],
): Redaction {
  return {
    sessions: done.map(({ tree, entryIds }) => ({ sessionId: tree.header.id, entryIds })),
    mayRepeat: done.flatMap(({ tree, entryIds }) =>
      summariesBehind(tree, new Set(entryIds)).map((entryId) => ({ sessionId: tree.header.id, entryId })),
    ),
  };
}

/** Returns a line's content in the current format, excluding its position in the tree. */
function contentOf(line: Line): Line {
  const entry = entryIn(line);
  const { id: _id, parentId: _parent, ...said } = entry === null ? line : lineOf(entry);
  const { firstKeptEntryId: _kept, firstKeptEntryIndex: _index, ...content } = said as Line;
  return content;
}

/** Returns the beginning of the text as it appears in a line, or `null` if it is too short to identify the line. */
function beginningOf(line: Line): string | null {
  const entry = entryIn(line);
  const [first = ""] = (entry === null ? "" : (entryText(entry)?.text ?? "")).split("\n");
  return first.length < leastTelling ? null : JSON.stringify(first.slice(0, tellingLength)).slice(1, -1);
}

function entryIn(line: Line): Entry | null {
  const [entry] = parseSession(stringifyJson(line)).lines;
  return entry === undefined || isCorrupt(entry) ? null : entry;
}

/** Whether a line might contain one of the IDs, possibly escaped. */
function mayHave(text: string | null, ids: ReadonlySet<string>): boolean {
  if (text === null) return false;
  for (const [, id = "", next] of text.matchAll(/"id"\s*:\s*"([^"\\]*)(["\\])/g))
    if (next === "\\" || ids.has(id)) return true;
  return /\\u006[49]/.test(text);
}

/** Parses a line. Returns `null` if it is damaged. */
function lineIn(text: string | null): Line | null {
  try {
    const line: unknown = text === null ? null : JSON.parse(text);
    return isRecord(line) ? line : null;
  } catch {
    return null;
  }
}
