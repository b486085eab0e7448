import type { Clock } from "./clock.ts";
import { systemClock } from "./clock.ts";
import type { ContextOptions, SessionContext } from "./context.ts";
import { contextOf, pathOf } from "./context.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Entry, SessionHeader } from "./entries.ts";
import { currentVersion, encodeEntry, isBookkeeping, lineOf } from "./entries.ts";
import { SkeinError } from "./errors.ts";
import { currentHeader, newHeader, rebuiltHeader } from "./header.ts";
import type { IdSource } from "./ids.ts";
import { createIdSource } from "./ids.ts";
import type { Linked, Node } from "./link.ts";
import { linkEntries, sameJson } from "./link.ts";
import { parseSessionId } from "./names.ts";
import type { ParsedSession } from "./parse-session.ts";
import type { EntryDraft } from "./seal.ts";
import { sealEntry } from "./seal.ts";

/** Time and ids, for tests that want to own them. */
export interface TreeOptions {
  readonly clock?: Clock;
  readonly newId?: IdSource;
}

/** What an append may be told. */
export interface AppendOptions {
  /** The entry's own id. The same id with the same content again changes nothing. */
  readonly id?: string;
  /** Refused with `conflict` unless this is the leaf now; `null` is before the root. */
  readonly expectedLeafId?: string | null;
}

const systemIds = createIdSource();

/**
 * A session in memory: a tree of entries, and the place where the next one goes. Synchronous, no I/O.
 *
 * Two words: the *tip* is the entry that the next append hangs on; the *leaf* is the nearest entry from there up
 * that is conversation and not bookkeeping (labels, names, `skein.*`).
 *
 * @example
 * ```ts
 * import { SessionTree } from "skein";
 * const tree = SessionTree.create({ cwd: "/home/ann" });
 * const question = tree.append({ type: "message", message: { role: "user", content: "Tea or coffee?" } });
 * tree.append({ type: "label", targetId: question.id, label: "start" });
 * tree.branch(question.id);
 * console.log(tree.encode());
 * ```
 */
export class SessionTree {
  readonly header: SessionHeader;
  readonly readOnly: boolean;
  readonly #nodes: Node[];
  readonly #byId: Map<string, Node>;
  readonly #diagnostics: Diagnostic[];
  readonly #labels = new Map<string, string>();
  readonly #clock: Clock;
  readonly #newId: IdSource;
  #children: Map<Node | null, Node[]> | null = null;
  #tip: Node | null = null;
  #name: string | null = null;

  private constructor(header: SessionHeader, readOnly: boolean, linked: Linked, options: TreeOptions) {
    this.header = header;
    this.readOnly = readOnly;
    this.#nodes = linked.nodes;
    this.#byId = linked.byId;
    this.#diagnostics = linked.diagnostics;
    this.#clock = options.clock ?? systemClock;
    this.#newId = options.newId ?? systemIds;
    for (const node of linked.nodes) this.#settle(node);
  }

  /** A new, empty session. */
  static create(
    init: { cwd: string; id?: string; parentSession?: string },
    options: TreeOptions = {},
  ): SessionTree {
    const id = init.id === undefined ? (options.newId ?? systemIds)() : parseSessionId(init.id);
    const time = (options.clock ?? systemClock).now();
    const header = newHeader({ id, time, cwd: init.cwd, parentSession: init.parentSession });
    return new SessionTree(header, false, { nodes: [], byId: new Map(), diagnostics: [] }, options);
  }

  /** The tree of a file as read. `lostHeader` stands in where the file has none. */
  static from(
    session: ParsedSession,
    options: TreeOptions & { readonly lostHeader?: { id: string; cwd?: string } } = {},
  ): SessionTree {
    const base = session.header?.skein?.base;
    const linked = linkEntries(session.lines, typeof base === "string" ? base : undefined);
    const header =
      session.header === null
        ? rebuiltHeader(linked.nodes[0]?.entry, options.lostHeader)
        : currentHeader(session.header);
    const diagnostics = [...session.diagnostics, ...linked.diagnostics];
    return new SessionTree(header, session.readOnly, { ...linked, diagnostics }, options);
  }

  /** What reading and linking found odd. */
  get diagnostics(): readonly Diagnostic[] {
    return this.#diagnostics;
  }

  get size(): number {
    return this.#nodes.length;
  }

  /** Where the next entry goes; `null` for an empty session. */
  get tipId(): string | null {
    return this.#tip?.entry.id ?? null;
  }

  /** Where the conversation stands; `null` before its root. */
  get leafId(): string | null {
    return leafOf(this.#tip);
  }

  get name(): string | null {
    return this.#name;
  }

  /** Live labels by the entry they are on. */
  get labels(): ReadonlyMap<string, string> {
    return this.#labels;
  }

  /** Every entry, in the order of the file. */
  *entries(): Generator<Entry> {
    for (const node of this.#nodes) yield node.entry;
  }

  entry(id: string): Entry | null {
    return this.#byId.get(id)?.entry ?? null;
  }

  /** The parent as resolved: bridged over damage, `null` for a root. */
  parentOf(id: string): Entry | null {
    return this.#node(id).parent?.entry ?? null;
  }

  /** The entries that hang on this one, oldest first; of `null`, the roots. */
  children(id: string | null): Entry[] {
    const parent = id === null ? null : this.#node(id);
    this.#children ??= childrenOf(this.#nodes);
    return (this.#children.get(parent) ?? []).map((node) => node.entry);
  }

  /** From the root to an entry, by default the tip. */
  path(id: string | null = this.tipId): Entry[] {
    return pathOf(id === null ? null : this.#node(id));
  }

  /** What a model is concerned with, seen from an entry, by default the tip. */
  context(id: string | null = this.tipId, options: ContextOptions = {}): SessionContext {
    return contextOf(id === null ? null : this.#node(id), this.#diagnostics, options);
  }

  /** Adds an entry behind the tip. */
  append(draft: EntryDraft, options: AppendOptions = {}): Entry {
    const known = options.id === undefined ? undefined : this.#byId.get(options.id);
    if (known !== undefined) return this.#again(known.entry, draft);
    const { expectedLeafId } = options;
    if (expectedLeafId !== undefined && expectedLeafId !== this.leafId) {
      const problem = `The leaf is ${this.leafId ?? "before the root"}, not ${expectedLeafId ?? "before the root"}`;
      throw new SkeinError("conflict", { problem });
    }
    return this.#appendAt(draft, this.#tip, options.id);
  }

  /** Moves to an entry, or to before the root; written down, so that it survives a reload. */
  branch(id: string | null): void {
    const target = id === null ? null : this.#node(id);
    if (target === this.#tip || id === this.leafId) return;
    this.#appendAt({ type: "custom", customType: "skein.leaf" }, target);
  }

  /** Moves to an entry, or to before the root, and leaves word there of what was on the branch that is left. */
  branchWithSummary(id: string | null, summary: string, details?: unknown): Entry {
    const target = id === null ? null : this.#node(id);
    const draft = { type: "branch_summary", fromId: this.leafId ?? "root", summary } as const;
    return this.#appendAt(details === undefined ? draft : { ...draft, details }, target);
  }

  /**
   * A new session with the path to an entry: the same entries under the same ids, so that compactions keep their
   * boundary, and the labels that are on them now.
   */
  fork(id: string | null, init: { id?: string; cwd?: string; parentSession?: string } = {}): SessionTree {
    const path = this.path(id);
    const fork = SessionTree.create(
      { cwd: this.header.cwd ?? "", parentSession: this.header.id, ...init },
      { clock: this.#clock, newId: this.#newId },
    );
    let parent: Node | null = null;
    for (const entry of path) parent = fork.#insert(withParent(entry, parent), parent);
    for (const { id: targetId } of path) {
      const label = this.#labels.get(targetId);
      if (fork.#labels.get(targetId) === label) continue;
      fork.append({ type: "label", targetId, ...(label === undefined ? {} : { label }) });
    }
    return fork;
  }

  /** The whole session as the text of a file. Bridged parents are written as they are now. */
  encode(): string {
    let text = `${JSON.stringify(this.header)}\n`;
    for (const { entry, parent } of this.#nodes) text += `${encodeEntry(withParent(entry, parent))}\n`;
    return text;
  }

  #again(entry: Entry, draft: EntryDraft): Entry {
    const place = { id: entry.id, parentId: entry.parentId, time: Date.parse(entry.timestamp) };
    const sealed = sealEntry(draft, place).entry;
    if (sameJson(lineOf(entry), sealed)) return entry;
    throw new SkeinError("conflict", { problem: `Another entry has the id ${entry.id}` });
  }

  #appendAt(draft: EntryDraft, parent: Node | null, id: string = this.#newId()): Entry {
    if (this.readOnly) {
      const problem = `it has version ${this.header.version}, newer than ${currentVersion}`;
      throw new SkeinError("read_only", { name: `Session ${this.header.id}`, problem });
    }
    this.#checkTargets(draft, parent);
    const place = { id, parentId: parent?.entry.id ?? null, time: this.#clock.now() };
    return this.#insert(sealEntry(draft, place).entry, parent).entry;
  }

  #checkTargets(draft: EntryDraft, parent: Node | null): void {
    if (draft.type === "label") this.#node(draft.targetId);
    if (draft.type !== "compaction" || draft.firstKeptEntryId === null) return;
    const kept = this.#node(draft.firstKeptEntryId);
    for (let node = parent; node !== kept; node = node.parent) {
      if (node !== null) continue;
      const problem = `firstKeptEntryId ${draft.firstKeptEntryId} is not on the branch`;
      throw new SkeinError("invalid_entry", { type: "compaction", problem });
    }
  }

  #insert(entry: Entry, parent: Node | null): Node {
    const node: Node = { entry, position: this.#nodes.length, parent };
    this.#nodes.push(node);
    this.#byId.set(entry.id, node);
    if (this.#children !== null) addChild(this.#children, node);
    this.#settle(node);
    return node;
  }

  /** What an entry changes when it comes last: the tip, a label, the name. */
  #settle(node: Node): void {
    const { entry } = node;
    this.#tip = node;
    if (entry.type === "label") {
      if (entry.label) this.#labels.set(entry.targetId, entry.label);
      else this.#labels.delete(entry.targetId);
    } else if (entry.type === "session_info") this.#name = entry.name?.trim() || null;
    else if (entry.type === "leaf") this.#tip = this.#leafTarget(entry.id, entry.targetId, node);
  }

  #leafTarget(id: string, targetId: string | null, fallback: Node): Node | null {
    if (targetId === null) return null;
    const target = this.#byId.get(targetId);
    if (target !== undefined) return target;
    const note = `the leaf was moved to ${targetId}, which is not in the session`;
    this.#diagnostics.push({ code: "unknown_leaf_target", note, entryId: id });
    return fallback;
  }

  #node(id: string): Node {
    const node = this.#byId.get(id);
    if (node !== undefined) return node;
    const advice = "`skein sessions tree` lists the entries of a session";
    throw new SkeinError("not_found", { what: "Entry", name: id, advice });
  }
}

function leafOf(tip: Node | null): string | null {
  let node = tip;
  while (node !== null && isBookkeeping(node.entry)) node = node.parent;
  return node?.entry.id ?? null;
}

function childrenOf(nodes: readonly Node[]): Map<Node | null, Node[]> {
  const children = new Map<Node | null, Node[]>();
  for (const node of nodes) addChild(children, node);
  return children;
}

function addChild(children: Map<Node | null, Node[]>, node: Node): void {
  const siblings = children.get(node.parent);
  if (siblings === undefined) children.set(node.parent, [node]);
  else siblings.push(node);
}

/** The entry, saying of its parent what the tree found. A root keeps what it said. */
function withParent(entry: Entry, parent: Node | null): Entry {
  if (parent === null || parent.entry.id === entry.parentId) return entry;
  const parentId = parent.entry.id;
  return entry.type === "opaque"
    ? { ...entry, parentId, original: { ...entry.original, parentId } }
    : { ...entry, parentId };
}
