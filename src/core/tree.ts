import type { Clock } from "./clock.ts";
import { systemClock } from "./clock.ts";
import type { ContextOptions, SessionContext } from "./context.ts";
import { contextOf, pathOf } from "./context.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Entry, SessionHeader } from "./entries.ts";
import {
  currentHeader,
  encodeEntry,
  isBookkeeping,
  newHeader,
  rebuiltHeader,
  withParentId,
} from "./entries.ts";
import { retryAdvice, SkeinError } from "./errors.ts";
import type { IdSource } from "./ids.ts";
import { createIdSource } from "./ids.ts";
import { isRecord } from "./is-record.ts";
import type { Linked, Node } from "./link-entries.ts";
import { linkEntries, linkedBytes, linkedInStep, linkingEntries, tipAfter } from "./link-entries.ts";
import { parseSessionId } from "./names.ts";
import type { ParsedSession } from "./parse-session.ts";
import type { Plan, PlannedItem } from "./plan.ts";
import { checkExpectedLeaf, planEntries, refuseNewer, requireNode } from "./plan.ts";
import type { EntryDraft } from "./seal.ts";
import type { Steps } from "./slices.ts";
import { atOnce } from "./slices.ts";

/** The clock and ID source, which tests can replace. */
export interface TreeOptions {
  readonly clock?: Clock;
  readonly newId?: IdSource;
}

/** Options for {@link SessionTree.append}. */
export interface TreeAppendOptions {
  /** The entry's ID. Repeating an append with the same ID and content changes nothing. */
  readonly id?: string;
  /** Throws `conflict` unless this is the current leaf. `null` means the position before the root. */
  readonly expectedLeafId?: string | null;
}

/** `lostHeader` replaces a missing header. */
type TreeReading = TreeOptions & { readonly lostHeader?: { id: string; cwd?: string } };

interface ForkInit {
  id?: string;
  cwd?: string;
  parentSession?: string;
}

const systemIds = createIdSource();

/**
 * A session in memory: a tree of entries and the position for the next one. Synchronous and without I/O.
 *
 * The *tip* is the entry that the next append is attached to. The *leaf* is the nearest conversation entry going up
 * from the tip. Labels, names and `skein.*` entries are skipped.
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
  readonly #missing: ReadonlySet<string>;
  readonly #diagnostics: Diagnostic[];
  readonly #labels = new Map<string, string>();
  readonly #clock: Clock;
  readonly #newId: IdSource;
  #children: Map<Node | null, Node[]> | null = null;
  #tip: Node | null = null;
  #leaf: Node | null = null;
  #name: string | null = null;

  private constructor(header: SessionHeader, readOnly: boolean, linked: Linked, options: TreeOptions) {
    this.header = header;
    this.readOnly = readOnly;
    this.#nodes = linked.nodes;
    this.#byId = linked.byId;
    this.#missing = linked.missing;
    this.#diagnostics = linked.diagnostics;
    this.#clock = options.clock ?? systemClock;
    this.#newId = options.newId ?? systemIds;
    // If this is only the end of a log, the session's name might have been set earlier.
    const { tailOf, tailName } = header.skein ?? {};
    if (typeof tailOf === "number" && typeof tailName === "string") this.#name = tailName;
  }

  /** Creates an empty session. */
  static create(
    init: { cwd: string; id?: string; parentSession?: string },
    options: TreeOptions = {},
  ): SessionTree {
    const id = init.id === undefined ? (options.newId ?? systemIds)() : parseSessionId(init.id);
    const time = (options.clock ?? systemClock).now();
    const header = newHeader({ id, time, cwd: init.cwd, parentSession: init.parentSession });
    return new SessionTree(header, false, linkEntries([]), options);
  }

  /** Builds the tree from a parsed file. `lostHeader` replaces a missing header. */
  static from(session: ParsedSession, options: TreeReading = {}): SessionTree {
    return atOnce(SessionTree.growing(session, options));
  }

  /** Like `from`, but one entry at a time, for large sessions. */
  static *growing(session: ParsedSession, options: TreeReading = {}): Steps<SessionTree> {
    const base = session.header?.skein?.base;
    const linked = yield* linkingEntries(session.lines, typeof base === "string" ? base : undefined);
    const header =
      session.header === null
        ? rebuiltHeader(linked.nodes[0]?.entry, options.lostHeader)
        : currentHeader(session.header);
    const diagnostics = [...session.diagnostics, ...linked.diagnostics];
    const tree = new SessionTree(header, session.readOnly, { ...linked, diagnostics }, options);
    for (const node of linked.nodes) {
      tree.#settle(node);
      if (node.position % linkedInStep === 0) yield linkedBytes;
    }
    return tree;
  }

  /** Problems found while reading and linking. */
  get diagnostics(): readonly Diagnostic[] {
    return this.#diagnostics;
  }

  get size(): number {
    return this.#nodes.length;
  }

  /** The entry that the next append is attached to, or `null` for an empty session. */
  get tipId(): string | null {
    return this.#tip?.entry.id ?? null;
  }

  /** The current leaf, or `null` before the root. */
  get leafId(): string | null {
    return this.#leaf?.entry.id ?? null;
  }

  get name(): string | null {
    return this.#name;
  }

  /** Current labels by entry ID. */
  get labels(): ReadonlyMap<string, string> {
    return this.#labels;
  }

  /** Yields all entries in file order, optionally starting at a position. */
  *entries(from = 0): Generator<Entry> {
    for (let position = from; position < this.#nodes.length; position++) {
      yield (this.#nodes[position] as Node).entry;
    }
  }

  entry(id: string): Entry | null {
    return this.#byId.get(id)?.entry ?? null;
  }

  /** Returns the resolved parent, which might be on the other side of a damaged line. Returns `null` for a root. */
  parentOf(id: string): Entry | null {
    return this.#node(id).parent?.entry ?? null;
  }

  /** Returns an entry's children, oldest first. For `null`, returns the roots. */
  children(id: string | null): Entry[] {
    const parent = id === null ? null : this.#node(id);
    this.#children ??= childrenOf(this.#nodes);
    return (this.#children.get(parent) ?? []).map((node) => node.entry);
  }

  /** Returns the path from the root to an entry. Defaults to the tip. */
  path(id: string | null = this.tipId): Entry[] {
    return pathOf(id === null ? null : this.#node(id));
  }

  /** Returns the context for a model at an entry. Defaults to the tip. */
  context(id: string | null = this.tipId, options: ContextOptions = {}): SessionContext {
    const leaf = id === null ? null : this.#node(id);
    return contextOf(leaf, this.#diagnostics, { ...options, ...leftOut(this.header) });
  }

  /** Appends an entry to the tip. */
  append(draft: EntryDraft, options: TreeAppendOptions = {}): Entry {
    const item = options.id === undefined ? { draft } : { draft, id: options.id };
    const plan = this.plan([item], options.expectedLeafId);
    this.commit(plan);
    return plan.entries[0] as Entry;
  }

  /**
   * Moves the leaf to an entry, or to the position before the root. The move is recorded as an entry. Returns `null` if
   * the leaf is already there.
   */
  branch(id: string | null): Entry | null {
    const plan = this.planBranch(id);
    this.commit(plan);
    return plan.entries[0] ?? null;
  }

  /** Moves the leaf to an entry, or to the position before the root, and appends a summary of the abandoned branch. */
  branchWithSummary(id: string | null, summary: string, details?: unknown): Entry {
    const plan = this.planBranchWithSummary(id, summary, details);
    this.commit(plan);
    return plan.entries[0] as Entry;
  }

  /** Like `branchWithSummary`, but returns the plan without adding it. */
  planBranchWithSummary(id: string | null, summary: string, details?: unknown): Plan {
    const draft = { type: "branch_summary", fromId: this.leafId ?? "root", summary } as const;
    const item = { draft: details === undefined ? draft : { ...draft, details } };
    return this.#plan([item], id === null ? null : this.#node(id));
  }

  /** Plans entries at the tip or under another parent. A store writes their lines and then commits the plan. */
  plan(items: readonly PlannedItem[], expectedLeafId?: string | null, parentId?: string | null): Plan {
    const parent = parentId === undefined ? this.#tip : parentId === null ? null : this.#node(parentId);
    const plan = this.#plan(items, parent);
    checkExpectedLeaf(plan, this.leafId, expectedLeafId);
    return plan;
  }

  /** Plans a move of the leaf. The plan is empty if the leaf is already there. */
  planBranch(id: string | null): Plan {
    const target = id === null ? null : this.#node(id);
    const there = target === this.#tip || id === this.leafId;
    return this.#plan(there ? [] : [{ draft: { type: "custom", customType: "skein.leaf" } }], target);
  }

  /** Adds a plan's entries. Throws `conflict` if other entries have been added since the plan was created. */
  commit(plan: Plan): void {
    const first = plan.nodes[0];
    if (first !== undefined && first.position !== this.#nodes.length) {
      throw new SkeinError("conflict", {
        problem: "Other entries have been added since this was planned",
        advice: retryAdvice,
      });
    }
    for (const node of plan.nodes) this.#add(node);
  }

  /**
   * Adds entries that another tree for the same file has sealed. Entries that this tree already contains are skipped.
   */
  takeIn(entries: Iterable<Entry>): void {
    for (const entry of entries) {
      if (this.#byId.has(entry.id)) continue;
      const parent = entry.parentId === null ? null : (this.#byId.get(entry.parentId) ?? null);
      this.#add({ entry, position: this.#nodes.length, parent });
    }
  }

  /**
   * Creates a new session that contains the branch up to an entry. The entries keep their IDs so that compaction
   * boundaries stay valid. The path's labels and the session's name are copied. `parentSession` is a path, as in pi.
   */
  fork(id: string | null = this.tipId, init: ForkInit = {}): SessionTree {
    return atOnce(this.forking(id, init));
  }

  /** Like `fork`, but one entry at a time, for large sessions. */
  *forking(id: string | null = this.tipId, init: ForkInit = {}): Steps<SessionTree> {
    // A `leaf` line moves the tip in this session. In the fork, it would move the tip again.
    const path = this.path(id).filter((entry) => entry.type !== "leaf");
    const fork = SessionTree.create(
      { cwd: this.header.cwd ?? "", ...init },
      { clock: this.#clock, newId: this.#newId },
    );
    let parent: Node | null = null;
    for (const entry of path) {
      const node: Node = { entry: withParent(entry, parent), position: fork.size, parent };
      fork.#add(node);
      parent = node;
      if (node.position % linkedInStep === 0) yield linkedBytes;
    }
    for (const { id: targetId } of path) {
      const label = this.#labels.get(targetId);
      if (fork.#labels.get(targetId) === label) continue;
      fork.append({ type: "label", targetId, ...(label === undefined ? {} : { label }) });
    }
    if (fork.name !== this.name)
      fork.append({ type: "session_info", ...(this.name === null ? {} : { name: this.name }) });
    return fork;
  }

  /** Yields the lines of a file, each with its line break: the header, then every entry with its resolved parent. */
  *encodeLines(): Generator<string> {
    yield `${JSON.stringify(this.header)}\n`;
    const { base } = this.header.skein ?? {};
    for (const { entry, parent } of this.#nodes) {
      const isCut = parent === null && entry.parentId === base;
      yield `${encodeEntry(isCut ? entry : withParent(entry, parent))}\n`;
    }
  }

  /** Returns the whole session as text. Use `encodeLines` for a session that exceeds the maximum string length. */
  encode(): string {
    return [...this.encodeLines()].join("");
  }

  #plan(items: readonly PlannedItem[], tip: Node | null): Plan {
    if (this.readOnly && items.length > 0) refuseNewer(this.header.id, this.header.version);
    for (const { id } of items) {
      if (id === undefined || !this.#missing.has(id)) continue;
      throw new SkeinError("conflict", {
        problem: `Entries in this session have ${id} as their parent, but that entry is lost`,
        advice: "Use a different ID",
      });
    }
    return planEntries(items, {
      tip,
      size: this.#nodes.length,
      time: this.#clock.now(),
      find: (id) => this.#byId.get(id),
      newId: this.#newId,
    });
  }

  #add(node: Node): void {
    this.#nodes.push(node);
    this.#byId.set(node.entry.id, node);
    if (this.#children !== null) addChild(this.#children, node);
    this.#settle(node);
  }

  /** Applies an entry to the tip, the leaf, the labels and the name. */
  #settle(node: Node): void {
    const { entry } = node;
    const onTip = node.parent === this.#tip && isBookkeeping(entry);
    this.#tip = tipAfter(node, this.#byId);
    if (!onTip) this.#leaf = leafOf(this.#tip);
    if (entry.type === "label") {
      if (entry.label) this.#labels.set(entry.targetId, entry.label);
      else this.#labels.delete(entry.targetId);
    } else if (entry.type === "session_info") this.#name = entry.name?.trim() || null;
    else if (entry.type === "leaf" && this.#tip === node) {
      const note = `the leaf was moved to ${entry.targetId}, which is not in the session`;
      this.#diagnostics.push({ code: "unknown_leaf_target", note, entryId: entry.id });
    }
  }

  #node(id: string): Node {
    return requireNode(this.#byId.get(id), id);
  }
}

/** Returns the state that a working set's header records for the part it omits. */
function leftOut(header: SessionHeader): Pick<ContextOptions, "base" | "initial"> {
  const { base, model, thinkingLevel, system } = header.skein ?? {};
  if (typeof base !== "string") return {};
  const initial = {
    ...(isRecord(model) ? { model: model as SessionContext["model"] } : {}),
    ...(typeof thinkingLevel === "string" ? { thinkingLevel } : {}),
    ...(typeof system === "string" ? { system } : {}),
  };
  return { base, initial };
}

function leafOf(tip: Node | null): Node | null {
  let node = tip;
  while (node !== null && isBookkeeping(node.entry)) node = node.parent;
  return node;
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

/** Returns the entry with its resolved parent. */
function withParent(entry: Entry, parent: Node | null): Entry {
  const parentId = parent?.entry.id ?? null;
  return parentId === entry.parentId ? entry : withParentId(entry, parentId);
}
