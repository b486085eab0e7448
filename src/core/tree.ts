import type { Clock } from "./clock.ts";
import { systemClock } from "./clock.ts";
import type { ContextOptions, SessionContext } from "./context.ts";
import { contextOf, pathOf } from "./context.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Entry, SessionHeader } from "./entries.ts";
import { encodeEntry, isBookkeeping, withParentId } from "./entries.ts";
import { decideAnew, SkeinError } from "./errors.ts";
import { currentHeader, newHeader, rebuiltHeader } from "./header.ts";
import type { IdSource } from "./ids.ts";
import { createIdSource } from "./ids.ts";
import type { Linked, Node } from "./link.ts";
import { linkEntries, linkedBytes, linkedInStep, linkingEntries, tipAfter } from "./link.ts";
import { parseSessionId } from "./names.ts";
import type { ParsedSession } from "./parse-session.ts";
import type { Plan, PlannedItem } from "./plan.ts";
import { planEntries, refuseNewer, requireNode } from "./plan.ts";
import type { EntryDraft } from "./seal.ts";
import { isRecord } from "./shape.ts";
import type { Steps } from "./slices.ts";
import { atOnce } from "./slices.ts";

/** Time and ids, for tests that want to own them. */
export interface TreeOptions {
  readonly clock?: Clock;
  readonly newId?: IdSource;
}

/** What an append may be told. */
export interface TreeAppendOptions {
  /** The entry's own id. The same id with the same content again changes nothing. */
  readonly id?: string;
  /** Refused with `conflict` unless this is the leaf now; `null` is before the root. */
  readonly expectedLeafId?: string | null;
}

/** `lostHeader` stands in where a file has none. */
type TreeReading = TreeOptions & { readonly lostHeader?: { id: string; cwd?: string } };

interface ForkInit {
  id?: string;
  cwd?: string;
  parentSession?: string;
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
    // A log's last part alone: its name may have been given before it.
    const { tailOf, tailName } = header.skein ?? {};
    if (typeof tailOf === "number" && typeof tailName === "string") this.#name = tailName;
  }

  /** A new, empty session. */
  static create(
    init: { cwd: string; id?: string; parentSession?: string },
    options: TreeOptions = {},
  ): SessionTree {
    const id = init.id === undefined ? (options.newId ?? systemIds)() : parseSessionId(init.id);
    const time = (options.clock ?? systemClock).now();
    const header = newHeader({ id, time, cwd: init.cwd, parentSession: init.parentSession });
    return new SessionTree(header, false, linkEntries([]), options);
  }

  /** The tree of a file as read. `lostHeader` stands in where the file has none. */
  static from(session: ParsedSession, options: TreeReading = {}): SessionTree {
    return atOnce(SessionTree.growing(session, options));
  }

  /** The same entry by entry, for what may be long. */
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
    return this.#leaf?.entry.id ?? null;
  }

  get name(): string | null {
    return this.#name;
  }

  /** Live labels by the entry they are on. */
  get labels(): ReadonlyMap<string, string> {
    return this.#labels;
  }

  /** Every entry, in the order of the file; from a position on, if given. */
  *entries(from = 0): Generator<Entry> {
    for (let position = from; position < this.#nodes.length; position++) {
      yield (this.#nodes[position] as Node).entry;
    }
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
    const leaf = id === null ? null : this.#node(id);
    return contextOf(leaf, this.#diagnostics, { ...options, ...leftOut(this.header) });
  }

  /** Adds an entry behind the tip. */
  append(draft: EntryDraft, options: TreeAppendOptions = {}): Entry {
    const item = options.id === undefined ? { draft } : { draft, id: options.id };
    const plan = this.plan([item], options.expectedLeafId);
    this.commit(plan);
    return plan.entries[0] as Entry;
  }

  /** Moves to an entry, or to before the root; written down, so that it survives a reload. `null`: it is there. */
  branch(id: string | null): Entry | null {
    const plan = this.planBranch(id);
    this.commit(plan);
    return plan.entries[0] ?? null;
  }

  /** Moves to an entry, or to before the root, and leaves word there of what was on the branch that is left. */
  branchWithSummary(id: string | null, summary: string, details?: unknown): Entry {
    const plan = this.planBranchWithSummary(id, summary, details);
    this.commit(plan);
    return plan.entries[0] as Entry;
  }

  /** The same, sealed but not added. */
  planBranchWithSummary(id: string | null, summary: string, details?: unknown): Plan {
    const draft = { type: "branch_summary", fromId: this.leafId ?? "root", summary } as const;
    const item = { draft: details === undefined ? draft : { ...draft, details } };
    return this.#plan([item], id === null ? null : this.#node(id));
  }

  /**
   * Entries for the tip, or for another parent, sealed but not added: a store writes their lines, then commits the plan.
   */
  plan(items: readonly PlannedItem[], expectedLeafId?: string | null, parentId?: string | null): Plan {
    const parent = parentId === undefined ? this.#tip : parentId === null ? null : this.#node(parentId);
    const plan = this.#plan(items, parent);
    const fresh = plan.nodes.length > 0;
    if (fresh && expectedLeafId !== undefined && expectedLeafId !== this.leafId) {
      const problem = `The leaf is ${this.leafId ?? "before the root"}, not ${expectedLeafId ?? "before the root"}`;
      throw new SkeinError("conflict", { problem, advice: decideAnew });
    }
    return plan;
  }

  /** The same for a move of the leaf; an empty plan when it is there already. */
  planBranch(id: string | null): Plan {
    const target = id === null ? null : this.#node(id);
    const there = target === this.#tip || id === this.leafId;
    return this.#plan(there ? [] : [{ draft: { type: "custom", customType: "skein.leaf" } }], target);
  }

  /** Adds what was planned last; a plan that is no longer the next one is refused. */
  commit(plan: Plan): void {
    const first = plan.nodes[0];
    if (first !== undefined && first.position !== this.#nodes.length) {
      throw new SkeinError("conflict", {
        problem: "Other entries were added since this was planned",
        advice: decideAnew,
      });
    }
    for (const node of plan.nodes) this.#add(node);
  }

  /** Adds entries that stand behind these in the file, as they were sealed by another tree of it; those that it has are passed over. */
  takeIn(entries: Iterable<Entry>): void {
    for (const entry of entries) {
      if (this.#byId.has(entry.id)) continue;
      const parent = entry.parentId === null ? null : (this.#byId.get(entry.parentId) ?? null);
      this.#add({ entry, position: this.#nodes.length, parent });
    }
  }

  /**
   * A new session with the path to an entry: the same entries under the same ids, so that compactions keep their
   * boundary, with the labels that are on them now and the session's name. `parentSession` is a path, as pi has it.
   */
  fork(id: string | null = this.tipId, init: ForkInit = {}): SessionTree {
    return atOnce(this.forking(id, init));
  }

  /** The same entry by entry, for what may be long. */
  *forking(id: string | null = this.tipId, init: ForkInit = {}): Steps<SessionTree> {
    // A `leaf` line is a move in this session; in the fork it would move the tip.
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

  /** The lines of a file, each with its line break: the header, then every entry. Parents are written as resolved. */
  *encodeLines(): Generator<string> {
    yield `${JSON.stringify(this.header)}\n`;
    const { base } = this.header.skein ?? {};
    for (const { entry, parent } of this.#nodes) {
      const isCut = parent === null && entry.parentId === base;
      yield `${encodeEntry(isCut ? entry : withParent(entry, parent))}\n`;
    }
  }

  /** The whole session as the text of a file. For one larger than the longest string, take the lines. */
  encode(): string {
    return [...this.encodeLines()].join("");
  }

  #plan(items: readonly PlannedItem[], tip: Node | null): Plan {
    if (this.readOnly && items.length > 0) refuseNewer(this.header.id, this.header.version);
    for (const { id } of items) {
      if (id === undefined || !this.#missing.has(id)) continue;
      throw new SkeinError("conflict", {
        problem: `Entries of this session name ${id} as a parent that is lost`,
        advice: "Use another id",
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

  /** What an entry changes when it comes last: tip and leaf, a label, the name. */
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

/** What a cut working set's header says of the part that is left out. */
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

/** The entry, saying of its parent what the tree found. */
function withParent(entry: Entry, parent: Node | null): Entry {
  const parentId = parent?.entry.id ?? null;
  return parentId === entry.parentId ? entry : withParentId(entry, parentId);
}
