import { isDeepStrictEqual } from "node:util";
import type { Entry } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { stringifyJson } from "../core/json.ts";
import type { Steps } from "../core/slices.ts";
import { atOnce } from "../core/slices.ts";
import { cutText } from "../core/text.ts";
import type { SessionTree } from "../core/tree.ts";
import type { HistoryPayload } from "../protocol/chat.ts";

/** A part of the active branch. The entries `before` and `after` are excluded. */
export interface HistoryRange {
  readonly limit?: number;
  readonly before?: string;
  readonly after?: string;
}

export const defaultLimit = 200;
const longestText = 12_000;
/** The size limit for a page. It also applies separately to pending input. */
export const maxBytes = 6 * 1024 * 1024;
const cutMark = "\n…(truncated)…";

export type ShownEntry = Extract<
  Entry,
  { type: "message" | "custom_message" | "compaction" | "branch_summary" }
>;
type HistoryMessage = HistoryPayload["messages"][number];

/**
 * Returns a value as the reader is allowed to see it. Applied before truncation, because half a secret would not be
 * recognized.
 */
export type ViewAs = <T extends object>(value: T) => T;

export const unchanged: ViewAs = (value) => value;

/** Returns a page of the active branch for display. Long text is truncated. */
export function historyOf(tree: SessionTree, range: HistoryRange = {}): HistoryPayload {
  const path = tree.path();
  const from = range.after === undefined ? 0 : placeOf(path, range.after) + 1;
  const to = range.before === undefined ? path.length : placeOf(path, range.before);
  const within = path.slice(from, Math.max(from, to)).filter(isShown);
  const forward = range.after !== undefined;
  const limit = range.limit ?? defaultLimit;
  const chosen = forward ? within.slice(0, limit) : within.slice(Math.max(0, within.length - limit));
  const { page, cut } = atOnce(withinBytes(chosen, forward));
  const firstShown = path.find(isShown)?.id;
  const lastShown = path.findLast(isShown)?.id;
  const key = sessionKeyOf(tree);
  const first = page[0]?.id;
  const last = page.at(-1)?.id;
  return {
    ...(key === null ? {} : { sessionKey: key }),
    sessionId: tree.header.id,
    leafId: tree.leafId,
    messages: page,
    ...(first === undefined || first === firstShown ? {} : { nextBefore: first }),
    ...(last === undefined || last === lastShown ? {} : { nextAfter: last }),
    pending: [],
    truncated: cut,
    ...(tree.diagnostics.length === 0 ? {} : { diagnostics: [...tree.diagnostics] }),
  };
}

function placeOf(path: readonly Entry[], id: string): number {
  const place = path.findIndex((entry) => entry.id === id);
  if (place !== -1) return place;
  const advice = "Use the ID of an entry on the branch that ends at the leaf";
  throw new SkeinError("not_found", { what: "Entry on the active branch", name: id, advice });
}

/** Whether an entry is a message or summary that its author did not mark as hidden. */
export function isShown(entry: Entry): entry is ShownEntry {
  const { type } = entry;
  if (type === "custom_message") return entry.display !== false;
  return type === "message" || type === "compaction" || type === "branch_summary";
}

/** Fills the page from the requested end. The page contains at least one message. */
export function* withinBytes(
  entries: readonly ShownEntry[],
  forward: boolean,
  viewAs: ViewAs = unchanged,
  most = maxBytes,
): Steps<{ page: HistoryMessage[]; cut: boolean }> {
  const page: HistoryMessage[] = [];
  let bytes = 0;
  let cut = false;
  for (const entry of forward ? entries : entries.toReversed()) {
    const shown = bounded(cutTexts(viewAs(messageOf(entry))));
    bytes += shown.bytes;
    if (bytes > most && page.length > 0) return { page: forward ? page : page.reverse(), cut: true };
    page.push(shown.value);
    cut ||= shown.cut;
    yield shown.bytes;
  }
  return { page: forward ? page : page.reverse(), cut };
}

/** Returns an entry as a message, with its ID but without its position in the tree. */
export function messageOf(entry: ShownEntry): HistoryMessage {
  switch (entry.type) {
    case "message":
      return { ...entry.message, id: entry.id };
    case "custom_message":
      return { ...withoutPlace(entry), role: "custom", id: entry.id };
    case "compaction":
      return { ...withoutPlace(entry), role: "compactionSummary", id: entry.id };
    case "branch_summary":
      return { ...withoutPlace(entry), role: "branchSummary", id: entry.id };
  }
}

function withoutPlace(entry: Entry): object {
  const { type: _type, parentId: _parentId, timestamp, ...rest } = entry;
  return { ...rest, timestamp: Date.parse(timestamp) || 0 };
}

/** Returns the content of pending input as a page shows it. */
export function shownContent(
  role: string,
  content: unknown,
  viewAs: ViewAs = unchanged,
): {
  readonly content: unknown;
  readonly cut: boolean;
  readonly isMasked: boolean;
  readonly bytes: number;
} {
  const message = { id: "", role, content } as HistoryMessage;
  const viewed = viewAs(message);
  const { value, ...shown } = bounded(cutTexts(viewed));
  const isMasked = !isDeepStrictEqual(viewed, message);
  return { content: (value as { readonly content?: unknown }).content, isMasked, ...shown };
}

/** Replaces a message that is too large for a page with a note. */
function bounded({ value, cut }: { value: HistoryMessage; cut: boolean }) {
  const bytes = Buffer.byteLength(stringifyJson(value));
  if (bytes <= maxBytes) return { value, cut, bytes };
  return {
    value: { id: value.id, role: value.role, content: tooLargeToShow(bytes) },
    cut: true,
    bytes: 100,
  };
}

export function tooLargeToShow(bytes: number): { type: "text"; text: string }[] {
  return [{ type: "text", text: `(too large to show: ${bytes} bytes)` }];
}

/** Truncates the text in a message and its blocks. More deeply nested values are limited only by the page size. */
function cutTexts(message: HistoryMessage): { value: HistoryMessage; cut: boolean } {
  let cut = false;
  const cutOne = (text: string) => {
    if (text.length <= longestText) return text;
    cut = true;
    return cutText(text, longestText) + cutMark;
  };
  const cutFields = (value: object): object =>
    Object.fromEntries(
      Object.entries(value).map(([field, each]) =>
        typeof each === "string" && field !== "data" && !field.endsWith("Signature")
          ? [field, cutOne(each)]
          : [field, each],
      ),
    );
  const value = cutFields(message) as HistoryMessage & { content?: unknown };
  if (Array.isArray(value.content)) {
    value.content = value.content.map((block) =>
      typeof block === "object" && block !== null ? cutFields(block) : block,
    );
  }
  return { value, cut };
}

/** Returns the key stored in a session's own file. Files from other programs have none. */
export function sessionKeyOf(tree: SessionTree): string | null {
  const key = tree.header.skein?.key;
  return typeof key === "string" ? key : null;
}
