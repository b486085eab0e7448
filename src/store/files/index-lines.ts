import type { ContextState } from "../../core/context.ts";
import { initialState, stateAfter } from "../../core/context.ts";
import type { Entry } from "../../core/entries.ts";
import { isBookkeeping, isCorrupt } from "../../core/entries.ts";
import type { ParsedSession } from "../../core/parse-session.ts";
import { addToDigest, emptyDigest } from "../digest.ts";
import { wordsOf } from "../search/words.ts";
import { entryText } from "../search-text.ts";
import { applyMetaEntry, metaOf } from "../session-meta.ts";
import { blobsOf } from "../session-trees.ts";
import type { IndexedEntry, IndexState, PlacedEntry } from "./index-db.ts";

/**
 * Computes a session's index data entry by entry, so only the new part of a log needs to be read. Has no side effects.
 * `lookup` finds entries in earlier parts.
 */

export interface IndexLookup {
  readonly createdAt: number;
  placed(entryId: string): PlacedEntry | null;
  idAt(position: number): string | null;
  state(id: number): string;
}

export interface IndexedLines {
  readonly fold: IndexState;
  readonly entries: readonly IndexedEntry[];
  readonly states: readonly { readonly id: number; readonly value: string }[];
}

/** A part of a log. */
interface Reading {
  readonly session: ParsedSession;
  /** The part's position in the log. */
  readonly offset: number;
  /**
   * Parents according to the tree of the whole log, `null` for a root. If absent, the parents stated in the lines
   * apply.
   */
  readonly parentOf?: (entry: Entry) => string | null;
}

export const emptyIndexState: IndexState = {
  header: null,
  meta: {},
  version: 1,
  key: null,
  name: null,
  saidAt: 0,
  digest: emptyDigest,
  tip: null,
  last: null,
  leafId: null,
  chain: { offset: 0, position: 0 },
  isOdd: false,
  states: 0,
};

/** Adds a part of a log. Returns `null` if the part is irregular and the tree of the whole log must be built. */
export function indexLines(before: IndexState, reading: Reading, lookup: IndexLookup): IndexedLines | null {
  const indexer = new LineIndexer(withHeader(before, reading.session), lookup);
  const { session, offset, parentOf } = reading;
  const codes = new Set(session.diagnostics.map(({ code }) => code));
  if (parentOf === undefined) {
    if (codes.has("corrupt_line") || codes.has("migrated")) return null;
    if (offset > 0 && codes.has("foreign_line")) return null;
  }
  for (const [index, entry] of session.lines.entries()) {
    const place = session.places[index];
    if (isCorrupt(entry) || place === undefined) continue;
    const parentId = parentOf === undefined ? entry.parentId : parentOf(entry);
    const at = { offset: offset + place.offset, length: place.length };
    const isSure = indexer.add(entry, parentId, at);
    if (!isSure && parentOf === undefined) return null;
  }
  return indexer.finish();
}

function withHeader(fold: IndexState, { header }: ParsedSession): IndexState {
  if (fold.header !== null || header === null) return fold;
  return { ...fold, header, ...metaOf(header, []) };
}

class LineIndexer {
  readonly #lookup: IndexLookup;
  readonly #entries: IndexedEntry[] = [];
  readonly #added = new Map<string, PlacedEntry>();
  readonly #states: { id: number; value: string }[] = [];
  readonly #known = new Map<number, ContextState>();
  #fold: IndexState;

  constructor(fold: IndexState, lookup: IndexLookup) {
    this.#fold = fold;
    this.#lookup = lookup;
  }

  /** Returns `false` if the parent is missing. An entry whose ID already exists is skipped, as in the tree. */
  add(entry: Entry, parentId: string | null, at: { offset: number; length: number }): boolean {
    if (this.#placed(entry.id) !== null) return true;
    const parent = parentId === null ? null : this.#placed(parentId);
    const position = this.#fold.digest.entries;
    const leaf = isBookkeeping(entry) ? (parent?.leaf ?? null) : position;
    const state = this.#stateId(parent, entry);
    const placed: PlacedEntry = { id: entry.id, position, leaf, state };
    this.#added.set(entry.id, placed);
    this.#entries.push({ ...placed, ...at, parent: parent?.position ?? null, ...searchable(entry) });
    this.#settle(entry, placed, parent, at);
    return parentId === null || parent !== null;
  }

  finish(): IndexedLines {
    return { fold: this.#fold, entries: this.#entries, states: this.#states };
  }

  #settle(
    entry: Entry,
    placed: PlacedEntry,
    parent: PlacedEntry | null,
    { offset, length }: { offset: number; length: number },
  ): void {
    const fold = this.#fold;
    const moved = entry.type === "leaf" ? this.#target(entry.targetId, placed) : placed;
    const goesOn = (parent?.id ?? null) === (fold.last?.id ?? null);
    const chain = goesOn ? fold.chain : { offset, position: placed.position };
    const beyond = { offset: offset + length, position: placed.position + 1 };
    this.#fold = {
      ...fold,
      ...applyMetaEntry(fold, fold.header, entry),
      ...(entry.type === "session_info" ? { name: entry.name?.trim() || null } : {}),
      ...(isBookkeeping(entry) ? {} : { saidAt: Date.parse(entry.timestamp) || fold.saidAt }),
      digest: addToDigest(fold.digest, entry, this.#lookup.createdAt),
      tip: moved,
      last: placed,
      leafId: this.#leafId(moved),
      chain: entry.type === "leaf" ? beyond : chain,
      isOdd: fold.isOdd,
    };
  }

  /** Returns the target of a pi `leaf` line, or the line itself if the target does not exist. */
  #target(id: string | null, itself: PlacedEntry): PlacedEntry | null {
    return id === null ? null : (this.#placed(id) ?? itself);
  }

  #leafId(tip: PlacedEntry | null): string | null {
    if (tip === null || tip.leaf === null) return null;
    if (tip.leaf === tip.position) return tip.id;
    const { leafId, tip: before } = this.#fold;
    // Bookkeeping entries at the tip do not move the leaf. Any other leaf must be looked up.
    return before?.leaf === tip.leaf ? leafId : this.#idAt(tip.leaf);
  }

  #idAt(position: number): string | null {
    const first = this.#entries[0]?.position ?? 0;
    return position >= first ? (this.#entries[position - first]?.id ?? null) : this.#lookup.idAt(position);
  }

  #placed(id: string): PlacedEntry | null {
    return this.#added.get(id) ?? this.#lookup.placed(id);
  }

  #stateId(parent: PlacedEntry | null, entry: Entry): number {
    const before = parent === null ? initialState : this.#stateOf(parent.state);
    const after = stateAfter(before, entry);
    if (after === before && parent !== null) return parent.state;
    const id = this.#fold.states;
    this.#fold = { ...this.#fold, states: id + 1 };
    this.#states.push({ id, value: JSON.stringify(after) });
    this.#known.set(id, after);
    return id;
  }

  #stateOf(id: number): ContextState {
    const known = this.#known.get(id) ?? (JSON.parse(this.#lookup.state(id)) as ContextState);
    this.#known.set(id, known);
    return known;
  }
}

function searchable(entry: Entry): Pick<IndexedEntry, "role" | "time" | "text" | "blobs"> {
  const said = entryText(entry);
  return {
    role: said?.role ?? entry.type,
    time: Date.parse(entry.timestamp) || 0,
    text: said === null ? null : wordsOf(said.text),
    blobs: blobsOf(entry),
  };
}
