import type { Entry } from "../../core/entries.ts";
import type { EntryPlace } from "./entry-places.ts";
import { placeAfter } from "./entry-places.ts";

interface Placed {
  readonly place: EntryPlace;
  readonly parentId: string | null;
  /** `null` for a root, and for an entry that comes before its parent. */
  readonly parent: Placed | null;
}

/**
 * Computes the places of entries in the order of a log, one entry at a time. Unlike a tree, it does not keep the
 * entries themselves, so a large session needs little memory.
 */
export class LogPlaces {
  readonly #byId = new Map<string, Placed>();
  readonly #ids: string[] = [];
  /** Parents that have not occurred yet. */
  readonly #awaited = new Set<string>();
  #tip: Placed | null = null;
  #isOdd = false;

  /** Whether an entry comes before its parent. Such a session is always read as a whole. */
  get isOdd(): boolean {
    return this.#isOdd;
  }

  get tip(): EntryPlace | null {
    return this.#tip?.place ?? null;
  }

  get tipId(): string | null {
    return this.tip === null ? null : (this.#ids[this.tip.seq] ?? null);
  }

  /**
   * The nearest conversation entry, going up from the tip. By now, parents that followed their children in the log are
   * known.
   */
  get leafId(): string | null {
    const passed = new Set<string>();
    for (let id = this.tipId; id !== null && !passed.has(id); ) {
      const placed = this.#byId.get(id);
      if (placed === undefined) return null;
      if (placed.place.leafSeq === placed.place.seq) return id;
      passed.add(id);
      id = placed.parentId;
    }
    return null;
  }

  add(entry: Entry): EntryPlace {
    const { id, parentId } = entry;
    const parent = parentId === null ? null : (this.#byId.get(parentId) ?? null);
    if (parentId !== null && parent === null) this.#awaited.add(parentId);
    if (this.#awaited.has(id)) this.#isOdd = true;
    const place = placeAfter(parent?.place ?? null, entry, this.#ids.length, this.#keptSeq(entry, parent));
    const placed = { place, parentId, parent };
    this.#byId.set(id, placed);
    this.#ids.push(id);
    this.#tip = this.#tipAfter(entry, placed);
    return place;
  }

  /**
   * Returns the position of the first entry that a compaction keeps, or `null` if that entry is not on the compaction's
   * branch.
   */
  #keptSeq(entry: Entry, parent: Placed | null): number | null {
    if (entry.type !== "compaction" || entry.firstKeptEntryId === undefined) return null;
    const kept = this.#byId.get(entry.firstKeptEntryId) ?? null;
    for (let above = parent; above !== null; above = above.parent) if (above === kept) return kept.place.seq;
    return null;
  }

  /** The target of a pi `leaf` line, or the entry itself. */
  #tipAfter(entry: Entry, placed: Placed): Placed | null {
    if (entry.type !== "leaf") return placed;
    return entry.targetId === null ? null : (this.#byId.get(entry.targetId) ?? placed);
  }
}
