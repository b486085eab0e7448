import type { ContextMessage } from "../core/context.ts";
import type { Compaction, Entry } from "../core/entries.ts";
import { isBookkeeping } from "../core/entries.ts";
import type { IdSource } from "../core/ids.ts";
import type { AssistantMessage, Message } from "../core/messages.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { AppendItem } from "../store/contract.ts";

/** The end of a branch, said again beside itself. Pure. */

export interface CopiedBranch {
  readonly items: readonly AppendItem[];
  /** The copies' ids by those of the originals. */
  readonly copies: ReadonlyMap<string, string>;
  /** Entries that have no copy: only others write their type, and the model does not see them. */
  readonly leftBehind: number;
}

/**
 * The entries of a path from a place on, as the context has them. A problem: something in it cannot be written, and the
 * context would not be the same without it. All but the last name the path's end: a log that ends in one of them was torn
 * there, and is to go back.
 */
export function copyBranch(
  path: readonly Entry[],
  from: number,
  messages: ReadonlyMap<string, ContextMessage>,
  newId: IdSource,
): CopiedBranch | { readonly problem: string } {
  const before = new Set(path.slice(0, from).map(({ id }) => id));
  const takenOut = takenOutIn(path);
  const copies = new Map<string, string>();
  const drafts: { draft: CopyDraft; id: string }[] = [];
  let leftBehind = 0;
  for (const entry of path.slice(from)) {
    const draft = copyOf(entry, {
      message: messages.get(entry.id) ?? (takenOut.has(entry.id) ? null : undefined),
      newIdOf: (id) => copies.get(id) ?? null,
      isBefore: (id) => before.has(id),
    });
    if (draft === null) {
      if (!spokenFor.has(entry.type)) leftBehind++;
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

/** Without a copy because of what they are, or because an edit took them out: nothing is missing. */
const spokenFor: ReadonlySet<Entry["type"]> = new Set([
  "message",
  "branch_summary",
  "custom",
  "custom_message",
  "label",
  "session_info",
  "context_edit",
]);

/**
 * Where copying has to begin so that an entry has a copy: at the entry, or before it at one whose edit stands behind it.
 * Edits are not ours to write, so what they say is written into the copy.
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

/** The entry that this one needs to have on its branch; `null`: none. */
export function pointsAt(entry: Entry): string | null {
  if (entry.type === "context_edit") return entry.targetId;
  return entry.type === "compaction" ? (entry.firstKeptEntryId ?? null) : null;
}

/** Entries that the last of their edits leaves out. */
function takenOutIn(path: readonly Entry[]): ReadonlySet<string> {
  const takenOut = new Set<string>();
  for (const entry of path) {
    if (entry.type !== "context_edit") continue;
    if (entry.replacement === null) takenOut.add(entry.targetId);
    else takenOut.delete(entry.targetId);
  }
  return takenOut;
}

/**
 * Entries said again on another branch of their session. A copy names its original, so that it is neither spent nor said
 * twice in what the session comes to, and a redaction of the one is a redaction of the other.
 */

export interface CopySite {
  /** What the context has of the entry; `null`: an edit took it out. `undefined`: it is nothing that the model sees. */
  readonly message: { readonly role: string } | null | undefined;
  /** The new id of an entry that was copied before; `null`: it was not. */
  newIdOf(id: string): string | null;
  /** Whether an entry stands on the branch where the copies begin. */
  isBefore(id: string): boolean;
}

/** A copy's draft. */
export type CopyDraft = EntryDraft & { readonly skein: { readonly copyOf: string } };

/** A draft, or why there is none: it need not be copied (`null`), or cannot be, and the context would not be the same. */
export function copyOf(entry: Entry, site: CopySite): CopyDraft | { readonly problem: string } | null {
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
  if (site.message === null) return { problem: "an edit took out the summary of a compaction" };
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
      return { problem: "it has a system prompt among its entries, which is not ours to write" };
    default:
      return null;
  }
}

const stopReasons = ["stop", "length", "toolUse", "error", "aborted"];

/** With what older programs leave out. A copy has spent nothing, and no provider has counted the context it stands in. */
function completeAnswer(message: AssistantMessage): object {
  const { api = "", provider = "", model = "", stopReason = "" } = message;
  const calls = message.content.some(({ type }) => type === "toolCall");
  const ended = stopReasons.includes(stopReason) ? stopReason : calls ? "toolUse" : "stop";
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost };
  return { ...message, api, provider, model, usage, stopReason: ended };
}

/** All fields of the entry but its place, some of them others, with the original's id. */
function marked(entry: Entry, fields: object): CopyDraft {
  const { id, parentId: _parent, timestamp: _time, ...rest } = entry as Entry & { skein?: object };
  const { backTo: _back, ...skein } = (rest.skein ?? {}) as { backTo?: string };
  return { ...rest, ...fields, skein: { ...skein, copyOf: id } } as unknown as CopyDraft;
}

function fieldsOf(message: { readonly role: string } | undefined, names: readonly string[]): object {
  if (message === undefined) return {};
  return Object.fromEntries(names.map((name) => [name, Reflect.get(message, name)]));
}
