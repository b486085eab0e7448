import type { ContextMessage } from "../core/context.ts";
import type { Compaction, Entry } from "../core/entries.ts";
import { isBookkeeping } from "../core/entries.ts";
import type { IdSource } from "../core/ids.ts";
import type { AssistantMessage, Message } from "../core/messages.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { AppendItem } from "../store/contract.ts";

interface CopiedBranch {
  readonly items: readonly AppendItem[];
  /** The IDs of the copies, keyed by the IDs of their originals. */
  readonly copies: ReadonlyMap<string, string>;
  /**
   * The number of entries that were not copied because Skein does not write entries of their types. The model does not
   * see these entries.
   */
  readonly leftBehind: number;
}

/**
 * Copies the entries on a branch from a given position, as the context shows them. Returns a problem if an entry cannot
 * be written and the context would change without it. Every copy except the last contains the ID of the original
 * branch's last entry. If a log ends with such a copy, writing was interrupted, and the session returns to the original
 * branch.
 */
export function copyBranch(
  path: readonly Entry[],
  from: number,
  messages: ReadonlyMap<string, ContextMessage>,
  newId: IdSource,
): CopiedBranch | { readonly problem: string } {
  const before = new Set(path.slice(0, from).map(({ id }) => id));
  const editedOut = editedOutIn(path);
  const copies = new Map<string, string>();
  const drafts: { draft: CopyDraft; id: string }[] = [];
  let leftBehind = 0;
  for (const entry of path.slice(from)) {
    const draft = copyOf(entry, {
      message: messages.get(entry.id) ?? (editedOut.has(entry.id) ? null : undefined),
      newIdOf: (id) => copies.get(id) ?? null,
      isBefore: (id) => before.has(id),
    });
    if (draft === null) {
      if (!neverLeftBehind.has(entry.type)) leftBehind++;
      continue;
    }
    if ("problem" in draft) return draft;
    const id = newId();
    copies.set(entry.id, id);
    drafts.push({ draft, id });
  }
  const backTo = path.at(-1)?.id;
  const items = drafts.map(({ draft, id }, place): AppendItem => {
    const skein = { ...draft.skein, backTo };
    return { draft: place === drafts.length - 1 ? draft : ({ ...draft, skein } as CopyDraft), id };
  });
  return { items, copies, leftBehind };
}

/**
 * Types that are never counted in `leftBehind`. Their entries are copied unless an edit removed them or they do not
 * affect the copy.
 */
const neverLeftBehind: ReadonlySet<Entry["type"]> = new Set([
  "message",
  "branch_summary",
  "custom",
  "custom_message",
  "label",
  "session_info",
  "context_edit",
]);

/**
 * Returns the position at which copying must begin so that it includes an entry. This is either the entry itself or an
 * earlier entry whose edit comes after it. Skein does not write edits, so the copy contains the edited content.
 */
export function copyingFrom(path: readonly Entry[], first: number): number {
  const places = new Map(path.map(({ id }, place) => [id, place]));
  let from = first;
  for (let place = path.length - 1; place >= from && place >= 0; place--) {
    const entry = path[place];
    if (entry?.type === "context_edit") from = Math.min(from, places.get(entry.targetId) ?? from);
  }
  return from;
}

/** Returns the ID of the entry that this one requires on its branch, or `null` if it requires none. */
export function pointsAt(entry: Entry): string | null {
  if (entry.type === "context_edit") return entry.targetId;
  return entry.type === "compaction" ? (entry.firstKeptEntryId ?? null) : null;
}

/** Returns the IDs of the entries whose last edit removed them. */
function editedOutIn(path: readonly Entry[]): ReadonlySet<string> {
  const editedOut = new Set<string>();
  for (const entry of path) {
    if (entry.type !== "context_edit") continue;
    if (entry.replacement === null) editedOut.add(entry.targetId);
    else editedOut.delete(entry.targetId);
  }
  return editedOut;
}

interface CopySite {
  /** The entry's context message. `null` if an edit removed it, `undefined` if the model does not see the entry. */
  readonly message: { readonly role: string } | null | undefined;
  /** Returns the new ID of an entry that has already been copied, otherwise `null`. */
  newIdOf(id: string): string | null;
  /** Whether an entry is on the branch before the first copy. */
  isBefore(id: string): boolean;
}

/**
 * Each copy contains the ID of its original, so that usage is not counted twice and redacting one redacts the other.
 */
type CopyDraft = EntryDraft & { readonly skein: { readonly copyOf: string } };

/**
 * Returns a draft, `null` if the entry does not need to be copied, or a problem if it cannot be copied and the context
 * would change without it.
 */
function copyOf(entry: Entry, site: CopySite): CopyDraft | { readonly problem: string } | null {
  if (isBookkeeping(entry)) return null;
  switch (entry.type) {
    case "message":
      return copyOfMessage(entry, site);
    case "model_change":
    case "thinking_level_change":
    case "custom":
      return marked(entry, {});
    case "custom_message":
      return site.message === null ? null : marked(entry, fieldsOf(site.message, ["content"]));
    case "branch_summary":
      if (site.message === null) return null;
      return marked(entry, { fromId: entry.fromId ?? "root", ...fieldsOf(site.message, ["summary"]) });
    case "compaction":
      return copyOfCompaction(entry, site);
    default:
      return null;
  }
}

function copyOfCompaction(entry: Compaction, site: CopySite): CopyDraft | { problem: string } {
  if (site.message === null) return { problem: "an edit removed the summary of a compaction" };
  const { firstKeptEntryId: kept = entry.id, tokensBefore = 0 } = entry;
  const isKept = kept !== entry.id && site.isBefore(kept);
  const firstKeptEntryId = site.newIdOf(kept) ?? (isKept ? kept : null);
  return marked(entry, { tokensBefore, ...fieldsOf(site.message, ["summary"]), firstKeptEntryId });
}

function copyOfMessage(
  entry: Extract<Entry, { type: "message" }>,
  { message: seen }: CopySite,
): CopyDraft | { problem: string } | null {
  if (seen === null) return null;
  const message = (seen ?? entry.message) as Message;
  const timestamp = message.timestamp ?? (Date.parse(entry.timestamp) || 0);
  switch (message.role) {
    case "assistant":
      return marked(entry, { message: { ...completeAnswer(message), timestamp } });
    case "toolResult": {
      const { toolName = "unknown", isError = false } = message;
      return marked(entry, { message: { ...message, toolName, isError, timestamp } });
    }
    case "bashExecution": {
      const { cancelled = false, truncated = false } = message;
      return marked(entry, { message: { ...message, cancelled, truncated, timestamp } });
    }
    case "user":
    case "custom":
      return marked(entry, { message: { ...message, timestamp } });
    case "system":
      return { problem: "it contains a system prompt entry, which Skein does not write" };
    default:
      return null;
  }
}

const stopReasons = ["stop", "length", "toolUse", "error", "aborted"];

/** Fills in fields that older programs omit. Sets the usage to zero so that nothing is counted twice. */
function completeAnswer(message: AssistantMessage): object {
  const { api = "", provider = "", model = "", stopReason = "" } = message;
  const calls = message.content.some(({ type }) => type === "toolCall");
  const ended = stopReasons.includes(stopReason) ? stopReason : calls ? "toolUse" : "stop";
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost };
  return { ...message, api, provider, model, usage, stopReason: ended };
}

/**
 * Returns the entry's fields without its position in the tree. Replaces the given fields and adds the original's ID.
 */
function marked(entry: Entry, fields: object): CopyDraft {
  const { id, parentId: _parent, timestamp: _time, ...rest } = entry as Entry & { skein?: object };
  const { backTo: _back, ...skein } = (rest.skein ?? {}) as { backTo?: string };
  return { ...rest, ...fields, skein: { ...skein, copyOf: id } } as unknown as CopyDraft;
}

function fieldsOf(message: { readonly role: string } | undefined, names: readonly string[]): object {
  if (message === undefined) return {};
  return Object.fromEntries(names.map((name) => [name, Reflect.get(message, name)]));
}
