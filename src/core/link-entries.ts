import type { Diagnostic } from "./diagnostics.ts";
import type { CorruptLine, Entry } from "./entries.ts";
import { isCorrupt, lineOf } from "./entries.ts";
import type { Steps } from "./slices.ts";
import { atOnce } from "./slices.ts";

/** The number of entries per step. `linkedBytes` is the cost of a step, expressed in bytes read. */
export const linkedInStep = 512;
export const linkedBytes = 64 * linkedInStep;

/** An entry in the tree. Parents are resolved, and following them always ends at a root. */
export interface Node {
  readonly entry: Entry;
  /** The position in the file. */
  readonly position: number;
  parent: Node | null;
}

export interface Linked {
  readonly nodes: Node[];
  readonly byId: Map<string, Node>;
  /** Parent IDs that match no entry. */
  readonly missing: Set<string>;
  readonly diagnostics: Diagnostic[];
}

/**
 * Links entries to their parents, in linear time and without recursion.
 * - If several entries have the same ID, the first is used.
 * - If a parent is missing and a damaged line precedes the entry, that line is assumed to be the parent: the entry is
 *   linked to the entry before the damaged line. Without a damaged line, the entry becomes a root.
 * - The first entry of a cycle becomes a root.
 * - An entry whose parent is `base` becomes a root without a diagnostic. `base` is the parent that a working set
 *   deliberately omits.
 */
export function linkEntries(lines: Iterable<Entry | CorruptLine>, base?: string): Linked {
  return atOnce(linkingEntries(lines, base));
}

/** Like `linkEntries`, but one entry at a time, for large sessions. */
export function* linkingEntries(lines: Iterable<Entry | CorruptLine>, base?: string): Steps<Linked> {
  const nodes: Node[] = [];
  const byId = new Map<string, Node>();
  const diagnostics: Diagnostic[] = [];
  /** Entries that directly follow a damaged line, each mapped to the entry before that line. */
  const behindDamage = new Map<Node, Node>();
  let previous: Node | null = null;
  let damaged = false;
  let read = 0;
  for (const line of lines) {
    if (++read % linkedInStep === 0) yield linkedBytes;
    if (isCorrupt(line)) {
      damaged = true;
      continue;
    }
    const first = byId.get(line.id);
    if (first !== undefined) {
      diagnostics.push(duplicate(first.entry, line));
      previous = first;
      continue;
    }
    const node: Node = { entry: line, position: nodes.length, parent: null };
    if (damaged && previous !== null) behindDamage.set(node, previous);
    damaged = false;
    previous = node;
    nodes.push(node);
    byId.set(line.id, node);
  }
  const left = base !== undefined && byId.has(base) ? undefined : base;
  const missing = yield* resolveParents(nodes, byId, behindDamage, left, diagnostics);
  return { nodes, byId, missing, diagnostics };
}

/** Returns the tip after this entry: the entry itself, or the target of a `leaf` line. */
export function tipAfter(node: Node, byId: ReadonlyMap<string, Node>): Node | null {
  const { entry } = node;
  if (entry.type !== "leaf") return node;
  return entry.targetId === null ? null : (byId.get(entry.targetId) ?? node);
}

function* resolveParents(
  nodes: readonly Node[],
  byId: ReadonlyMap<string, Node>,
  behindDamage: ReadonlyMap<Node, Node>,
  base: string | undefined,
  diagnostics: Diagnostic[],
): Steps<Set<string>> {
  const missing = new Set<string>();
  const bridges = new Map<string, Node>();
  let forward = false;
  for (const node of nodes) {
    if (node.position % linkedInStep === 0) yield linkedBytes;
    const { id, parentId } = node.entry;
    if (parentId === null || parentId === base) continue;
    // The parent is usually the preceding entry, which needs no lookup.
    const before = nodes[node.position - 1];
    const parent =
      before?.entry.id === parentId ? before : (byId.get(parentId) ?? bridges.get(parentId) ?? null);
    if (parent !== null) {
      node.parent = parent;
      if (parent.position >= node.position) forward = true;
      if (parent.entry.id !== parentId) diagnostics.push(bridged(node.entry, parent.entry));
      continue;
    }
    const previous = behindDamage.get(node);
    if (previous === undefined) {
      missing.add(parentId);
      const note = `parent ${parentId} is not in the session, so the entry starts its own branch`;
      diagnostics.push({ code: "missing_parent", note, entryId: id });
      continue;
    }
    node.parent = previous;
    bridges.set(parentId, previous);
    diagnostics.push(bridged(node.entry, previous.entry));
  }
  if (forward) cutCycles(nodes, diagnostics);
  return missing;
}

/** Walks up from every node once. `seen` records which walk visited a node first. */
function cutCycles(nodes: readonly Node[], diagnostics: Diagnostic[]): void {
  const seen = new Int32Array(nodes.length).fill(-1);
  for (const start of nodes) {
    let node: Node | null = start;
    while (node !== null && seen[node.position] === -1) {
      seen[node.position] = start.position;
      node = node.parent;
    }
    if (node === null || seen[node.position] !== start.position) continue;
    const first = earliestInCycle(node);
    first.parent = null;
    const note = "the entry is its own ancestor, so it now starts its own branch";
    diagnostics.push({ code: "cycle_cut", note, entryId: first.entry.id });
  }
}

function earliestInCycle(inside: Node): Node {
  let earliest = inside;
  for (let node = inside.parent; node !== null && node !== inside; node = node.parent) {
    if (node.position < earliest.position) earliest = node;
  }
  return earliest;
}

function bridged(child: Entry, parent: Entry): Diagnostic {
  const note = `parent ${child.parentId} was on a damaged line; bridged to ${parent.id}`;
  return { code: "bridged_parent", note, entryId: child.id };
}

function duplicate(first: Entry, again: Entry): Diagnostic {
  return sameJson(lineOf(first), lineOf(again))
    ? { code: "duplicate_id", note: "the same entry occurs more than once in the file", entryId: again.id }
    : {
        code: "conflicting_id",
        note: "another entry has the same ID; the first one is used",
        entryId: again.id,
      };
}

/** Compares JSON values, ignoring key order. Not recursive, because a line can be deeply nested. */
export function sameJson(left: unknown, right: unknown): boolean {
  const pairs: [unknown, unknown][] = [[left, right]];
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const [a, b] = pair;
    if (a === b) continue;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
    const keys = Object.keys(a);
    if (Array.isArray(a) !== Array.isArray(b) || keys.length !== Object.keys(b).length) return false;
    for (const key of keys) {
      if (!Object.hasOwn(b, key)) return false;
      pairs.push([Reflect.get(a, key), Reflect.get(b, key)]);
    }
  }
  return true;
}
