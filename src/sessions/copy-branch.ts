import type { ContextMessage } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import type { IdSource } from "../core/ids.ts";
import type { AppendItem } from "../store/contract.ts";
import type { CopyDraft } from "./copy-entry.ts";
import { copyOf } from "./copy-entry.ts";

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
