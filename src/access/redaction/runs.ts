import type { CharacterSet } from "./characters.ts";
import { bitOf, isIn } from "./characters.ts";

/**
 * How far characters of a set go on. What was walked once is remembered, so that a text that tempts a rule at every place
 * is still walked once a set.
 */
export class Runs {
  readonly #text: string;
  readonly #known = new Map<CharacterSet, { from: number; to: number }>();

  constructor(text: string) {
    this.#text = text;
  }

  /** The first place from `from` on that is not of the set; some place behind `from + most` where there are more. */
  end(set: CharacterSet, from: number, most: number): number {
    const text = this.#text;
    const known = this.#known.get(set);
    let to = known !== undefined && from >= known.from && from <= known.to ? known.to : from;
    const bit = bitOf(set);
    const limit = Math.min(text.length, from + most + 1);
    while (to < limit && isIn(bit, text.charCodeAt(to))) to++;
    this.#known.set(set, { from: known !== undefined && to === known.to ? known.from : from, to });
    return to;
  }
}
