import { createHash } from "node:crypto";
import type { Entry } from "../core/entries.ts";
import { currentVersion, newHeader } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import type { TextBlock } from "../core/messages.ts";
import { sessionIdProblem } from "../core/names.ts";
import type { EntryDraft, MessageDraft } from "../core/seal.ts";
import { sealEntry } from "../core/seal.ts";
import type { Steps } from "../core/slices.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import { SessionTree } from "../core/tree.ts";
import type { JsonObject } from "./json-lines.ts";
import { lineBytes } from "./json-lines.ts";

/** The line format of a file. OpenClaw's transcripts use pi's format. */
export type Source = "skein" | "pi" | "claude-code" | "codex";

/** Content in the source that the imported session lacks. */
export interface ImportLoss {
  readonly what: string;
  readonly count: number;
  readonly example?: string;
}

/** A session from another program. The same bytes always produce the same session, including its IDs. */
export interface ImportedSession {
  readonly source: Source;
  /** The ID in the source. If it is a valid session ID, `tree.header.id` is the same. */
  readonly sessionId: string;
  readonly cwd: string;
  /** In milliseconds since 1970, or 0 if the source does not contain a time. */
  readonly startedAt: number;
  readonly name: string | null;
  readonly tree: SessionTree;
  readonly notKept: readonly ImportLoss[];
}

export interface ImportOptions {
  /** The file's name without its folder. For some sources, the session's ID appears only in the file name. */
  readonly file?: string;
}

/** Counts the items that an import omits, in order of first occurrence. */
export class Losses {
  readonly #byText = new Map<string, { count: number; example?: string }>();

  add(what: string, example?: string, count = 1): void {
    const known = this.#byText.get(what);
    if (known !== undefined) known.count += count;
    else if (example === undefined) this.#byText.set(what, { count });
    else this.#byText.set(what, { count, example: cutText(escapeToLine(example), 300) });
  }

  list(): ImportLoss[] {
    return [...this.#byText].map(([what, loss]) => ({ what, ...loss }));
  }
}

/** Collects the names of fields that an import does not use. */
export class UnusedFields {
  readonly #used: ReadonlySet<string>;
  readonly #names = new Set<string>();
  #count = 0;

  /** `used` is a space-separated list of names. */
  constructor(used: string) {
    this.#used = new Set(used.split(" "));
  }

  check(value: JsonObject): void {
    const unused = Object.keys(value).filter((field) => !this.#used.has(field) && value[field] !== null);
    for (const field of unused) this.#names.add(field);
    if (unused.length > 0) this.#count += 1;
  }

  report(losses: Losses): void {
    if (this.#count === 0) return;
    const names = cutText([...this.#names].toSorted().join(", "), 300);
    losses.add("Fields that session entries cannot represent were left out.", names, this.#count);
  }
}

/** A draft can still change until the tree is built. */
export interface CollectedEntry {
  draft: EntryDraft;
  readonly id: string;
  readonly parentId: string | null;
  readonly time: number;
}

export interface ImportOrigin {
  readonly source: Source;
  readonly sessionId: string;
  readonly cwd: string;
  readonly startedAt: number;
  /** Additional header fields, such as the program's version. */
  readonly about: Readonly<Record<string, string | null>>;
}

/** The leaf of an imported session, and the names of the session and its branches. */
export interface ImportedState {
  readonly leaf: string | null;
  readonly name: string | null;
  readonly labels?: readonly { readonly targetId: string; readonly label: string }[];
}

/** Collects entries in the order of the source and builds a tree with their original times and parents. */
export class EntryCollector {
  readonly #items: CollectedEntry[] = [];
  readonly #byId = new Map<string, CollectedEntry>();

  /** If an ID is taken, `'` is appended. This way, the same source always produces the same IDs. */
  add(draft: EntryDraft, place: { id: string; parentId: string | null; time: number }): CollectedEntry {
    let { id } = place;
    while (id === "" || this.#byId.has(id)) id += "'";
    const item = { ...place, draft, id };
    this.#items.push(item);
    this.#byId.set(id, item);
    return item;
  }

  get last(): CollectedEntry | null {
    return this.#items.at(-1) ?? null;
  }

  /** Yields the entries from this one up to its root. */
  *ancestors(id: string | null): Generator<CollectedEntry> {
    for (let item = this.#byId.get(id ?? ""); item !== undefined; item = this.#byId.get(item.parentId ?? ""))
      yield item;
  }

  /** Appends the leaf, the labels and the name after all other entries. */
  addState({ leaf, name, labels = [] }: ImportedState): void {
    const time = this.last?.time ?? 0;
    let tip = this.last?.id ?? null;
    const add = (id: string, draft: EntryDraft, parentId = tip) => {
      tip = this.add(draft, { id, parentId, time }).id;
    };
    if (leaf !== tip) add("imported-leaf", { type: "custom", customType: "skein.leaf" }, leaf);
    for (const [index, label] of labels.entries())
      add(`imported-label-${index + 1}`, { type: "label", ...label });
    if (name !== null) add("imported-name", { type: "session_info", name });
  }

  /**
   * Builds the tree. Skips entries that cannot be written. The children of a skipped entry are attached to its parent.
   */
  *finish({ about, ...origin }: ImportOrigin, losses: Losses): Steps<ImportedSession> {
    const lines: Entry[] = [];
    const replacements = new Map<string, string | null>();
    for (const { draft, id, parentId, time } of this.#items) {
      yield lineBytes;
      const replacement = parentId === null ? undefined : replacements.get(parentId);
      const place = { id, parentId: replacement === undefined ? parentId : replacement, time };
      try {
        lines.push(sealEntry(draft, place).entry);
      } catch (error) {
        if (!(error instanceof SkeinError)) throw error;
        losses.add("An entry that cannot be written as a Skein entry was skipped.", error.message);
        replacements.set(id, place.parentId);
      }
    }
    const { source, sessionId, cwd, startedAt } = origin;
    const known = Object.fromEntries(Object.entries(about).filter(([, value]) => value !== null));
    const header = {
      ...newHeader({ id: toSessionId(sessionId), time: startedAt, cwd }),
      skein: { imported: { from: source, sessionId, ...known } },
    };
    const tree = yield* SessionTree.growing({
      header,
      version: currentVersion,
      readOnly: false,
      lines,
      diagnostics: [],
      places: [],
    });
    return { ...origin, name: tree.name, tree, notKept: losses.list() };
  }
}

/** Returns the source's session ID if it is valid in Skein, otherwise a hash of it. */
export function toSessionId(sessionId: string): string {
  if (sessionIdProblem(sessionId) === null) return sessionId;
  return standInId(sessionId);
}

/** The same text always produces the same session ID. */
export function standInId(text: string): string {
  return `imported-${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
}

/** Returns a file's name without its extension. */
export function fileStem(file: string | undefined): string | null {
  return file?.replace(/\.[^.]*$/, "") || null;
}

export type AnswerDraft = { type: "message"; message: Extract<MessageDraft, { role: "assistant" }> };
export type ResultDraft = { type: "message"; message: Extract<MessageDraft, { role: "toolResult" }> };

/** The entry format requires a cost, which the sources do not contain. */
export const noCost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };

/**
 * Converts a message's blocks. A plain string becomes one text block. If the result for a block is `null`, the block is
 * dropped.
 */
export function convertBlocks<B>(content: unknown, convert: (block: unknown) => B | null): (B | TextBlock)[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return Array.isArray(content) ? content.flatMap((block) => convert(block) ?? []) : [];
}

/** Tool arguments must be an object. Any other value is wrapped in one. */
export function toArguments(input: unknown): Record<string, unknown> {
  if (isRecord(input)) return input;
  return input === undefined || input === null ? {} : { input };
}

/** Makes a type name from a file safe to print in a sentence. */
export function shortType(type: unknown): string {
  return cutText(escapeToLine(String(type)), 60);
}
