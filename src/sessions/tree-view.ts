import { isSilentReply, noReply, readAnnouncement } from "../core/announcement.ts";
import type { Entry } from "../core/entries.ts";
import { isBookkeeping } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { stringifyJson } from "../core/json.ts";
import type { AssistantBlock, Content, Message } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { Steps } from "../core/slices.ts";
import { atOnce } from "../core/slices.ts";
import { cutText, shortenText } from "../core/text.ts";
import type { SessionTree } from "../core/tree.ts";
import type { RepairPayload, TreePayload, TreeRow } from "../protocol/session-views.ts";
import { sessionKeyOf } from "./history.ts";

/** The cost of a row, in bytes read. */
const rowBytes = 256;

/** A range of rows, in file order. */
interface TreeRange {
  readonly after?: string;
  readonly limit?: number;
  /** Returns an entry as its reader is allowed to see it. */
  viewAs?(entry: Entry): Entry;
}

/**
 * Returns a session's entries with their positions in the tree. Pass the store's key, because the key in the file might
 * be outdated.
 */
export function treeView(tree: SessionTree, key = sessionKeyOf(tree), range: TreeRange = {}): TreePayload {
  return atOnce(viewingTree(tree, key, range));
}

/** Like `treeView`, but row by row, for large sessions. */
export function* viewingTree(
  tree: SessionTree,
  key: string | null,
  { after, limit = Number.POSITIVE_INFINITY, viewAs = (entry) => entry }: TreeRange = {},
): Steps<TreePayload> {
  const active = new Set(tree.path().map((entry) => entry.id));
  const all = [...tree.entries()];
  const from = after === undefined ? 0 : placeOf(all, after) + 1;
  const page = all.slice(from, from + limit);
  const last = from + page.length < all.length ? page.at(-1) : undefined;
  const entries: TreeRow[] = [];
  for (const entry of page) {
    const row = rowOf(tree, entry, active.has(entry.id), viewAs(entry));
    entries.push(row);
    yield rowBytes + row.preview.length;
  }
  return {
    ...(key === null ? {} : { sessionKey: key }),
    sessionId: tree.header.id,
    ...(tree.name === null ? {} : { name: tree.name }),
    leafId: tree.leafId,
    tipId: tree.tipId,
    entries,
    ...(last === undefined ? {} : { nextAfter: last.id }),
    ...(tree.diagnostics.length === 0 ? {} : { diagnostics: [...tree.diagnostics] }),
  };
}

function placeOf(entries: readonly Entry[], id: string): number {
  const place = entries.findIndex((entry) => entry.id === id);
  if (place !== -1) return place;
  const advice = "Use `nextAfter` from the previous page, or omit it to start from the beginning";
  throw new SkeinError("not_found", { what: "Entry", name: id, advice });
}

function rowOf(tree: SessionTree, entry: Entry, active: boolean, viewed: Entry): TreeRow {
  const label = tree.labels.get(entry.id);
  return {
    id: entry.id,
    parentId: tree.parentOf(entry.id)?.id ?? null,
    type: entry.type === "opaque" ? String(entry.original.type) : entry.type,
    ...(entry.type === "message" ? { role: entry.message.role } : {}),
    ...(viewed.type === "message" ? messageFacts(viewed.message) : {}),
    timestamp: entry.timestamp,
    active,
    bookkeeping: isBookkeeping(entry),
    ...(label === undefined ? {} : { label }),
    preview: previewOf(viewed),
  };
}

function messageFacts(message: Message): Pick<TreeRow, "provenanceKind" | "stopReason"> {
  const provenance = "provenance" in message ? message.provenance : undefined;
  const stopReason = message.role === "assistant" ? message.stopReason : undefined;
  return present({ provenanceKind: provenance?.kind, stopReason });
}

const longest = 200;
/** In characters. Longer results are not parsed. */
const mostParsed = 16_384;

/** Returns an entry on one line, for lists and trees. */
export function previewOf(entry: Entry, most = longest): string {
  return inOneLine(textOfEntry(entry, most), most);
}

/** Returns a message on one line. */
export function previewOfMessage(message: { role: string }): string {
  return inOneLine(messageText(message as Message, longest), longest);
}

function inOneLine(text: string, most: number): string {
  return shortenText(text.replace(/\s+/g, " ").trim(), most);
}

function textOfEntry(entry: Entry, most: number): string {
  switch (entry.type) {
    case "message":
      return messageText(entry.message, most);
    case "custom_message":
      return contentText(entry.content, most);
    case "model_change":
      return `${entry.provider}/${entry.modelId}`;
    case "thinking_level_change":
      return entry.thinkingLevel;
    case "compaction":
    case "branch_summary":
      return entry.summary;
    case "custom":
      return entry.customType;
    case "label":
      return entry.label ? `"${entry.label}" on ${entry.targetId}` : `removed from ${entry.targetId}`;
    case "session_info":
      return entry.name ?? "(no name)";
    case "leaf":
    case "context_edit":
      return entry.targetId ?? "(before the root)";
    case "usage":
      return entry.model ?? "";
    case "active_tools_change":
      return entry.activeToolNames.join(", ");
    case "opaque":
      return entry.problem ?? "";
  }
}

function messageText(message: Message, most: number): string {
  switch (message.role) {
    case "bashExecution":
      return `$ ${message.command}`;
    case "toolResult":
      return `${message.toolName ?? "tool"}${message.isError === true ? " failed" : ""}: ${resultText(message.content, most)}`;
    case "assistant": {
      const text = contentText(message.content, most);
      return isSilentReply(text) ? noReply : text;
    }
    case "user": {
      const { deliveryId = "", sourceSessionKey = "" } = message.provenance ?? {};
      const announced = deliveryId.startsWith("announce:")
        ? readAnnouncement(firstText(message.content))
        : null;
      if (announced === null) return contentText(message.content, most);
      return `${announced.label || sourceSessionKey}: ${cutText(announced.reply, 4 * most)}`;
    }
    case "custom":
    case "system":
      return contentText(message.content, most);
    default:
      return "";
  }
}

function firstText(content: Content): string {
  if (typeof content === "string") return content;
  const [block] = content;
  return block?.type === "text" ? block.text : "";
}

/** Returns a tool result as text. If it is a JSON object, as with session tools, returns its fields. */
function resultText(content: Content, most: number): string {
  const text = firstText(content);
  if (!text.startsWith("{") || text.length > mostParsed) return contentText(content, most);
  try {
    return fieldsText(JSON.parse(text));
  } catch {
    return contentText(content, most);
  }
}

/** Formats an object's fields without JSON punctuation. IDs come last because they mean little to a reader. */
function fieldsText(value: unknown): string {
  if (!isRecord(value)) return stringifyJson(value);
  return Object.entries(value)
    .toSorted(([one], [other]) => Number(isIdName(one)) - Number(isIdName(other)))
    .map(([name, field]) => `${name}: ${typeof field === "string" ? field : stringifyJson(field)}`)
    .join(", ");
}

function isIdName(name: string): boolean {
  return /Ids?$/.test(name);
}

/** Joins the blocks. Each block is truncated first, because a tool result can be megabytes long. */
function contentText(content: Content | readonly AssistantBlock[], most: number): string {
  if (typeof content === "string") return cutText(content, 4 * most);
  return content
    .slice(0, 20)
    .map((block) => cutText(blockText(block), 4 * most))
    .filter((text) => text !== "")
    .join(" ");
}

/** Returns a block on one line. Thinking is not shown. */
function blockText(block: AssistantBlock | Exclude<Content, string>[number]): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "toolCall":
      return `→ ${block.name}(${cutText(fieldsText(block.arguments ?? {}), longest)})`;
    case "image":
      return `[image ${block.mimeType}]`;
    case "thinking":
      return "";
    default:
      return `[${(block as { type: string }).type}]`;
  }
}

/** Returns the damage in a log as a repair report that lists no changes. */
export function damageIn(file: string, tree: SessionTree): RepairPayload {
  const found = (code: string) => tree.diagnostics.filter((each) => each.code === code);
  return {
    file,
    damaged: found("corrupt_line").map(({ line = 0, note }) => ({ line, reason: note })),
    headerRebuilt: false,
    bridged: found("bridged_parent").map(({ entryId = "" }) => entryId),
    kept: tree.size,
    backup: null,
  };
}
