import { more } from "./found.ts";
import { mask } from "./mask.ts";

/** Shorter values stand in too many texts by chance. */
const leastKnown = 6;
/** Longer ones would have to be held back for too long; their beginning is masked. */
const longestKnown = 4096;

/** Secrets that are known by value, as they are and as JSON and addresses write them. */
export class KnownValues {
  readonly #byInitial = new Map<number, readonly string[]>();

  constructor(values: Iterable<string>) {
    const all = new Set<string>();
    for (const value of values) for (const form of formsOf(value)) all.add(form);
    for (const value of [...all].toSorted((a, b) => b.length - a.length || (a < b ? -1 : 1))) {
      const initial = value.charCodeAt(0);
      this.#byInitial.set(initial, [...(this.#byInitial.get(initial) ?? []), value]);
    }
  }

  get isEmpty(): boolean {
    return this.#byInitial.size === 0;
  }

  /** The text with every known value masked, as far as can be told. Values that overlap are masked as one. */
  mask(
    text: string,
    isWhole: boolean,
  ): { readonly text: string; readonly count: number; readonly heldFrom: number } {
    const parts: string[] = [];
    let count = 0;
    let done = 0;
    let at = 0;
    for (; at < text.length; at++) {
      const to = this.#endOf(text, at, isWhole);
      if (to === null) continue;
      if (to === more) break;
      parts.push(text.slice(done, at), mask(text.slice(at, to)));
      count++;
      done = to;
      at = to - 1;
    }
    parts.push(text.slice(done, at));
    return { text: parts.join(""), count, heldFrom: Math.min(at, text.length) };
  }

  /** Where the values that begin here end, with those that begin inside them. */
  #endOf(text: string, at: number, isWhole: boolean): number | null | typeof more {
    let to = this.#longest(text, at, isWhole);
    if (to === null || to === more) return to;
    for (let inside = at + 1; inside < to; inside++) {
      const other = this.#longest(text, inside, isWhole);
      if (other === more) return more;
      if (other !== null && other > to) to = other;
    }
    return to;
  }

  #longest(text: string, at: number, isWhole: boolean): number | null | typeof more {
    const candidates = this.#byInitial.get(text.charCodeAt(at));
    if (candidates === undefined) return null;
    for (const value of candidates) {
      if (text.startsWith(value, at)) return at + value.length;
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
