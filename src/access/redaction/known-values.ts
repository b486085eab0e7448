import type { Found, Page } from "./found.ts";
import { more } from "./found.ts";

/** Shorter values stand in too many texts by chance. */
const leastKnown = 6;
/** Longer ones would have to be held back for too long; their beginning is masked. */
const longestKnown = 4096;

/** Secrets that are known by value, as they are and as JSON and addresses write them. */
export class KnownValues {
  readonly #byInitial = new Map<number, readonly string[]>();
  readonly #all: ReadonlySet<string>;

  constructor(values: Iterable<string>) {
    const all = new Set<string>();
    for (const value of values) for (const form of formsOf(value)) all.add(form);
    this.#all = all;
    for (const value of [...all].toSorted((a, b) => b.length - a.length || (a < b ? -1 : 1))) {
      const initial = value.charCodeAt(0);
      this.#byInitial.set(initial, [...(this.#byInitial.get(initial) ?? []), value]);
    }
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  get initials(): Iterable<number> {
    return this.#byInitial.keys();
  }

  has(text: string): boolean {
    return this.#all.has(text);
  }

  /** The longest one that begins here. */
  find({ text, isWhole }: Page, at: number): Found {
    for (const value of this.#byInitial.get(text.charCodeAt(at)) ?? []) {
      if (text.startsWith(value, at)) return { from: at, to: at + value.length };
      const isCut = text.length - at < value.length && value.startsWith(text.slice(at));
      if (isCut && !isWhole) return more;
    }
    return null;
  }
}

function formsOf(value: string): string[] {
  const trimmed = value.trim().slice(0, longestKnown).toWellFormed();
  const forms = [trimmed, JSON.stringify(trimmed).slice(1, -1), encodeURIComponent(trimmed)];
  return forms.filter((form) => trimmed.length >= leastKnown && form.length >= leastKnown);
}
