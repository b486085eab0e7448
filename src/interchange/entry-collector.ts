import type { Entry, SessionHeader } from "../core/entries.ts";
import { currentVersion } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { newHeader } from "../core/header.ts";
import type { EntryDraft } from "../core/seal.ts";
import { sealEntry } from "../core/seal.ts";
import type { Steps } from "../core/slices.ts";
import { SessionTree } from "../core/tree.ts";
import type { Losses, Source } from "./imported.ts";
import { ownSessionId } from "./imported.ts";
import { lineBytes } from "./json-lines.ts";

/** An entry on its way: the draft may still grow until the end. */
export interface CollectedEntry {
  draft: EntryDraft;
  readonly id: string;
  readonly parentId: string | null;
  readonly time: number;
}

export interface Origin {
  readonly source: Source;
  readonly sessionId: string;
  readonly cwd: string;
  readonly startedAt: number;
  /** What else is worth knowing of where it came from; goes to the header. */
  readonly about: Readonly<Record<string, string>>;
}

/** Gathers entries in the order of the source, then makes a tree of them with their own times and parents. */
export class EntryCollector {
  readonly #items: CollectedEntry[] = [];
  readonly #byId = new Map<string, CollectedEntry>();

  /** An id that is taken gets a stroke, and another one: always the same for the same source. */
  add(draft: EntryDraft, place: { id: string; parentId: string | null; time: number }): CollectedEntry {
    let { id } = place;
    while (id === "" || this.#byId.has(id)) id += "'";
    const item = { draft, id, parentId: place.parentId, time: place.time };
    this.#items.push(item);
    this.#byId.set(id, item);
    return item;
  }

  get(id: string): CollectedEntry | null {
    return this.#byId.get(id) ?? null;
  }

  get last(): CollectedEntry | null {
    return this.#items.at(-1) ?? null;
  }

  /** From an entry up to its root. */
  *upwards(id: string | null): Generator<CollectedEntry> {
    for (let item = this.#byId.get(id ?? ""); item !== undefined; item = this.#byId.get(item.parentId ?? ""))
      yield item;
  }

  /** What cannot be written is passed over, and its children hang on its parent. */
  *finish(origin: Origin, losses: Losses): Steps<SessionTree> {
    const lines: Entry[] = [];
    const instead = new Map<string, string | null>();
    for (const { draft, id, parentId, time } of this.#items) {
      yield lineBytes;
      const standIn = parentId === null ? undefined : instead.get(parentId);
      const place = { id, parentId: standIn === undefined ? parentId : standIn, time };
      try {
        lines.push(sealEntry(draft, place).entry);
      } catch (error) {
        if (!(error instanceof SkeinError)) throw error;
        losses.add("An entry that cannot be written in our format was passed over.", error.message);
        instead.set(id, place.parentId);
      }
    }
    const header = headerOf(origin);
    return yield* SessionTree.growing({
      header,
      version: currentVersion,
      readOnly: false,
      lines,
      diagnostics: [],
      places: [],
    });
  }
}

function headerOf({ source, sessionId, cwd, startedAt, about }: Origin): SessionHeader {
  const header = newHeader({ id: ownSessionId(sessionId), time: startedAt, cwd });
  return { ...header, skein: { imported: { from: source, sessionId, ...about } } };
}
