import type { Entry } from "./entries.ts";
import { currentVersion, lineOf } from "./entries.ts";
import { retryAdvice, SkeinError } from "./errors.ts";
import type { Node } from "./link-entries.ts";
import { sameJson } from "./link-entries.ts";
import type { EntryDraft } from "./seal.ts";
import { sealEntry } from "./seal.ts";

/** An entry to add. If it has an ID, adding it again changes nothing. */
export interface PlannedItem {
  readonly draft: EntryDraft;
  readonly id?: string;
}

/**
 * Entries that are not in the tree yet, with their positions and lines. Write the lines first, then commit the plan.
 */
export interface Plan {
  /** One entry for each item, new or existing. */
  readonly entries: readonly Entry[];
  /** The lines to write, without line breaks. Empty if all entries exist. */
  readonly lines: readonly string[];
  readonly nodes: readonly Node[];
}

/** The part of a tree that planning uses. */
export interface PlanSite {
  readonly tip: Node | null;
  readonly size: number;
  readonly time: number;
  find(id: string): Node | undefined;
  newId(): string;
}

/** Seals the items in sequence, starting at the tip. Throws for the first invalid item and changes nothing. */
export function planEntries(items: readonly PlannedItem[], site: PlanSite): Plan {
  const entries: Entry[] = [];
  const lines: string[] = [];
  const nodes: Node[] = [];
  const added = new Map<string, Node>();
  const find = (id: string) => added.get(id) ?? site.find(id);
  let { tip } = site;
  for (const { draft, id } of items) {
    const known = id === undefined ? undefined : find(id);
    if (known !== undefined) {
      entries.push(sameEntry(known.entry, draft));
      continue;
    }
    const place = { id: id ?? site.newId(), parentId: tip?.entry.id ?? null, time: site.time };
    const { entry, line } = sealEntry(draft, place);
    checkTargets(draft, tip, find);
    const node: Node = { entry, position: site.size + nodes.length, parent: tip };
    entries.push(entry);
    lines.push(line);
    nodes.push(node);
    added.set(entry.id, node);
    tip = node;
  }
  return { entries, lines, nodes };
}

export function requireNode(node: Node | undefined, id: string): Node {
  if (node !== undefined) return node;
  const advice = "Use the ID of an entry in this session";
  throw new SkeinError("not_found", { what: "Entry", name: id, advice });
}

/** Throws `conflict` if a plan has new entries and the leaf is not the expected one. */
export function checkExpectedLeaf(
  plan: Plan,
  leafId: string | null,
  expectedLeafId: string | null | undefined,
): void {
  if (plan.nodes.length === 0 || expectedLeafId === undefined || expectedLeafId === leafId) return;
  const problem = `The leaf is ${leafId ?? "before the root"}, not ${expectedLeafId ?? "before the root"}`;
  throw new SkeinError("conflict", { problem, advice: retryAdvice });
}

/** Throws for a session from a newer version, which must not be extended. */
export function refuseNewer(id: string, version: number | undefined): never {
  const problem = `it has version ${version}, newer than ${currentVersion}`;
  throw new SkeinError("read_only", { name: `Session ${id}`, problem });
}

function sameEntry(entry: Entry, draft: EntryDraft): Entry {
  const place = { id: entry.id, parentId: entry.parentId, time: Date.parse(entry.timestamp) || 0 };
  const again = { ...sealEntry(withTimeOf(draft, entry), place).entry, timestamp: entry.timestamp };
  if (sameJson(lineOf(entry), again)) return entry;
  throw new SkeinError("conflict", {
    problem: `Another entry already has the ID ${entry.id}`,
    advice: "Use a new ID for a new entry",
  });
}

/** Returns the ID of the entry that a draft refers to, or `null` if there is none. */
export function targetOf(draft: EntryDraft): string | null {
  if (draft?.type === "label" || draft?.type === "context_edit") return draft.targetId;
  return draft?.type === "compaction" ? draft.firstKeptEntryId : null;
}

function checkTargets(draft: EntryDraft, tip: Node | null, find: (id: string) => Node | undefined): void {
  if (draft.type === "label" || draft.type === "context_edit")
    requireNode(find(draft.targetId), draft.targetId);
  if (draft.type !== "compaction" || draft.firstKeptEntryId === null) return;
  const kept = requireNode(find(draft.firstKeptEntryId), draft.firstKeptEntryId);
  for (let node = tip; node !== kept; node = node.parent) {
    if (node !== null) continue;
    const problem = `firstKeptEntryId ${draft.firstKeptEntryId} is not on the branch`;
    throw new SkeinError("invalid_entry", { type: "compaction", problem });
  }
}

/** If the draft has no time, the time of the existing entry is used. */
function withTimeOf(draft: EntryDraft, entry: Entry): EntryDraft {
  if (draft?.type !== "message" || entry.type !== "message" || draft.message?.timestamp !== undefined)
    return draft;
  const { timestamp } = entry.message;
  return timestamp === undefined ? draft : { ...draft, message: { ...draft.message, timestamp } };
}
