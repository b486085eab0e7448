import type { Diagnostic } from "./diagnostics.ts";
import type { Compaction, ContextEdit, CorruptLine, Entry } from "./entries.ts";
import type { Node } from "./link-entries.ts";
import { linkEntries, tipAfter } from "./link-entries.ts";
import type { Content, Message } from "./messages.ts";
import { isNote, textOf } from "./messages.ts";

/** Replaces the entries that a compaction removed from the context. */
interface CompactionSummaryMessage {
  role: "compactionSummary";
  summary: string;
  tokensBefore?: number;
  timestamp: number;
}

/** Summarizes an abandoned branch. */
interface BranchSummaryMessage {
  role: "branchSummary";
  summary: string;
  fromId?: string;
  timestamp: number;
}

/** A message in the context: either a conversation message or a summary. */
export type ContextMessage =
  | Exclude<Message, { role: "system" }>
  | CompactionSummaryMessage
  | BranchSummaryMessage;

/** The part of a session that is relevant to a model. */
export interface SessionContext {
  readonly messages: readonly ContextMessage[];
  /** `entryIds[i]` is the ID of the entry that `messages[i]` was built from. */
  readonly entryIds: readonly string[];
  readonly model: { readonly provider: string; readonly modelId: string } | null;
  readonly thinkingLevel: string;
  /** The system prompt, if the file has one. */
  readonly system: string | null;
  /** The ID of the oldest entry within the byte budget, or `null` if nothing was omitted. */
  readonly cut: string | null;
  readonly diagnostics: readonly Diagnostic[];
}

/** Options for {@link buildContext}. */
export interface ContextOptions {
  /** Only the newest entries up to this size are used. The summary from a compaction is always included. */
  readonly byteBudget?: number;
  /** The parent that a working set deliberately omits. */
  readonly base?: string;
  /** The state at `base`, for paths that begin there. */
  readonly initial?: Partial<Pick<SessionContext, "model" | "thinkingLevel" | "system">>;
}

/**
 * Builds the context from a branch. The most recent model and thinking level on the branch apply. The summary from the
 * last compaction comes first, followed by the entries that it kept and then by later entries. If `leafId` is absent,
 * the current leaf is used. If it is `null`, the context is empty.
 *
 * @example
 * ```ts
 * import { buildContext, parseSession } from "skein";
 * const { lines } = parseSession('{"type":"session","version":3,"id":"a"}\n');
 * const { messages, model } = buildContext(lines);
 * ```
 */
export function buildContext(
  lines: Iterable<Entry | CorruptLine>,
  leafId?: string | null,
  options: ContextOptions = {},
): SessionContext {
  const { nodes, byId, diagnostics } = linkEntries(lines, options.base);
  const last = nodes.at(-1);
  const tip = last === undefined ? null : tipAfter(last, byId);
  const leaf = leafId === null ? null : leafId === undefined ? tip : byId.get(leafId);
  if (leaf === undefined && typeof leafId === "string") {
    const note = "the leaf is not in the session, so the context is empty";
    diagnostics.push({ code: "unknown_leaf_target", note, entryId: leafId });
  }
  return contextOf(leaf ?? null, diagnostics, options);
}

/** Like `buildContext`, but for a linked leaf. */
export function contextOf(
  leaf: Node | null,
  found: readonly Diagnostic[],
  options: ContextOptions = {},
): SessionContext {
  const path = pathOf(leaf);
  const diagnostics = [...found];
  const lastCompaction = path.findLastIndex((entry) => entry.type === "compaction");
  const compaction = path[lastCompaction] as Compaction | undefined;
  const kept = compaction === undefined ? 0 : firstKept(path, compaction, lastCompaction, diagnostics);
  const chosen = path.slice(kept);
  const edits = editsIn(chosen);
  const { from, cut } = withinBudget(chosen, edits, options.byteBudget);
  const messages: ContextMessage[] = [];
  const entryIds: string[] = [];
  const take = (entry: Entry, message: ContextMessage | null) => {
    if (message === null) return;
    messages.push(message);
    entryIds.push(entry.id);
  };
  if (compaction !== undefined)
    take(compaction, edited(compactionSummary(compaction), edits.get(compaction.id)));
  for (let index = from; index < chosen.length; index++) {
    const entry = chosen[index] as Entry;
    take(entry, contextMessage(entry, edits));
  }
  const leftOut = options.base !== undefined && path[0]?.parentId === options.base;
  return { messages, entryIds, ...stateOf(path, leftOut ? options.initial : {}), cut, diagnostics };
}

/** Returns the path from the root to this node. */
export function pathOf(leaf: Node | null): Entry[] {
  const path: Entry[] = [];
  for (let node = leaf; node !== null; node = node.parent) path.push(node.entry);
  return path.reverse();
}

function firstKept(
  path: readonly Entry[],
  compaction: Compaction,
  index: number,
  diagnostics: Diagnostic[],
): number {
  if (compaction.firstKeptEntryId === compaction.id) return index;
  const kept = path.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
  if (kept !== -1 && kept < index) return kept;
  const behind = keptBehindDamage(path.slice(0, index), compaction);
  if (behind !== -1) {
    const note = `the first kept entry ${compaction.firstKeptEntryId} is lost, so the context starts with the entry after it`;
    diagnostics.push({ code: "bridged_kept_entry", note, entryId: compaction.id });
    return behind;
  }
  const note = `nothing before the compaction is kept: ${compaction.firstKeptEntryId ?? "the entry it names"} is not before it on this branch`;
  diagnostics.push({ code: "unknown_kept_entry", note, entryId: compaction.id });
  return index;
}

/**
 * Returns the index of the first surviving entry that a compaction kept, which is the lost entry's child. Returns -1 if
 * there is none.
 */
export function keptBehindDamage(path: readonly Entry[], { firstKeptEntryId }: Compaction): number {
  return path.findIndex(({ parentId }) => parentId !== null && parentId === firstKeptEntryId);
}

/** Counts back from the newest message, which is always included. */
function withinBudget(
  chosen: readonly Entry[],
  edits: ContextEdits,
  budget: number | undefined,
): { from: number; cut: string | null } {
  if (budget === undefined) return { from: 0, cut: null };
  let bytes = 0;
  let hasShown = false;
  for (let index = chosen.length - 1; index >= 0; index--) {
    const message = contextMessage(chosen[index] as Entry, edits);
    if (message === null) continue;
    bytes += shownBytes(message);
    const next = chosen[index + 1];
    if (bytes > budget && hasShown && next !== undefined) return { from: index + 1, cut: next.id };
    hasShown = true;
  }
  return { from: 0, cut: null };
}

/** Messages never change, and the context is rebuilt at every step, so each message is measured only once. */
const sizes = new WeakMap<ContextMessage, number>();
/** The number of bytes to count for an image. An image costs a limited number of tokens, regardless of its size. */
const imageBytes = 12_000;

/** Returns the size of the part of a message that a model sees, without `details`, usage and metadata. */
function shownBytes(message: ContextMessage): number {
  const known = sizes.get(message);
  if (known !== undefined) return known;
  const size = messageBytes(message);
  sizes.set(message, size);
  return size;
}

/** Returns the number of bytes in a context that count against a byte budget. */
export function contextBytes({ messages }: Pick<SessionContext, "messages">): number {
  return messages.reduce((sum, message) => sum + shownBytes(message), 0);
}

function messageBytes(message: ContextMessage): number {
  switch (message.role) {
    case "compactionSummary":
    case "branchSummary":
      return Buffer.byteLength(message.summary);
    case "bashExecution":
      if (message.excludeFromContext === true) return 0;
      return Buffer.byteLength(message.command) + Buffer.byteLength(message.output);
    default: {
      const { content } = message;
      if (!Array.isArray(content)) return Buffer.byteLength(String(content ?? ""));
      return content.reduce((sum: number, block) => sum + blockBytes(block), 0);
    }
  }
}

function blockBytes(block: unknown): number {
  const { type, text } = (block ?? {}) as { readonly type?: unknown; readonly text?: unknown };
  if (type === "image") return imageBytes;
  return Buffer.byteLength(typeof text === "string" ? text : (JSON.stringify(block) ?? ""));
}

/** The settings in effect after an entry. */
export type ContextState = Pick<SessionContext, "model" | "thinkingLevel" | "system">;

export const initialState: ContextState = { model: null, thinkingLevel: "off", system: null };

/** Returns the same object if the entry changes nothing. */
export function stateAfter(state: ContextState, entry: Entry): ContextState {
  if (entry.type === "model_change") {
    return { ...state, model: { provider: entry.provider, modelId: entry.modelId } };
  }
  if (entry.type === "thinking_level_change") return { ...state, thinkingLevel: entry.thinkingLevel };
  if (entry.type !== "message") return state;
  const { message } = entry;
  if (message.role === "system") return { ...state, system: textOf(message.content) };
  if (message.role !== "assistant" || !message.provider || !message.model || isNote(message)) return state;
  const { provider, model } = message;
  if (state.model?.provider === provider && state.model.modelId === model) return state;
  return { ...state, model: { provider, modelId: model } };
}

function stateOf(path: readonly Entry[], initial: ContextOptions["initial"] = {}): ContextState {
  let state: ContextState = { ...initialState, ...initial };
  for (const entry of path) state = stateAfter(state, entry);
  return state;
}

/**
 * Returns the message that a model sees for an entry after edits, or `null` if the model does not see the entry. Only
 * the last compaction is visible.
 */
export function contextMessage(entry: Entry, edits: ContextEdits): ContextMessage | null {
  return edited(messageOf(entry), edits.get(entry.id));
}

function messageOf(entry: Entry): ContextMessage | null {
  switch (entry.type) {
    case "message":
      return entry.message.role === "system" ? null : entry.message;
    case "custom_message": {
      const { customType, content, display, details } = entry;
      const message: ContextMessage = { role: "custom", customType, content, timestamp: timeOf(entry) };
      if (display !== undefined) message.display = display;
      if (details !== undefined) message.details = details;
      return message;
    }
    case "branch_summary": {
      if (entry.summary === "") return null;
      const from = entry.fromId === undefined ? {} : { fromId: entry.fromId };
      return { role: "branchSummary", summary: entry.summary, ...from, timestamp: timeOf(entry) };
    }
    default:
      return null;
  }
}

function compactionSummary(entry: Compaction): CompactionSummaryMessage {
  const before = entry.tokensBefore === undefined ? {} : { tokensBefore: entry.tokensBefore };
  return { role: "compactionSummary", summary: entry.summary, ...before, timestamp: timeOf(entry) };
}

function timeOf(entry: Entry): number {
  const time = Date.parse(entry.timestamp);
  return Number.isNaN(time) ? 0 : time;
}

type Replacement = ContextEdit["replacement"];
/** Replacements, keyed by the ID of the edited entry. */
export type ContextEdits = ReadonlyMap<string, Replacement>;

/** If an entry was edited several times, the last edit applies. */
export function editsIn(chosen: readonly Entry[]): ContextEdits {
  const edits = new Map<string, Replacement>();
  for (const entry of chosen) if (entry.type === "context_edit") edits.set(entry.targetId, entry.replacement);
  return edits;
}

/** Replaces the content of a message. `null` removes the message. */
function edited(message: ContextMessage | null, replacement: Replacement | undefined): ContextMessage | null {
  if (message === null || replacement === undefined) return message;
  if (replacement === null) return null;
  const { content } = replacement as { content: Content };
  const blocks = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  switch (message.role) {
    case "assistant":
      return { ...message, content: blocks.filter((block) => block.type === "text") };
    case "toolResult":
      return { ...message, content: blocks };
    case "bashExecution":
      return { ...message, output: textOf(content) };
    case "compactionSummary":
    case "branchSummary":
      return { ...message, summary: textOf(content) };
    default:
      return { ...message, content };
  }
}
