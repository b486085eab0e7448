import { isIn, setCount } from "./characters.ts";

/**
 * How far characters of a set go on. What was walked once is remembered, so that a text that tempts a rule at every place
 * is still walked once a set.
 */
export class Runs {
  readonly #text: string;
  readonly #from = new Int32Array(setCount);
  readonly #to = new Int32Array(setCount);

  constructor(text: string) {
    this.#text = text;
  }

  /** The first place from `from` on that is not of the set; some place behind `from + most` where there are more. */
  end(set: number, from: number, most: number): number {
    const text = this.#text;
    const knownFrom = this.#from[set] ?? 0;
    const knownTo = this.#to[set] ?? 0;
    const isKnown = from >= knownFrom && from <= knownTo;
    let to = isKnown ? knownTo : from;
    const bit = 1 << set;
    const limit = Math.min(text.length, from + most + 1);
    while (to < limit && isIn(bit, text.charCodeAt(to))) to++;
    this.#from[set] = isKnown ? knownFrom : from;
    this.#to[set] = to;
    return to;
  }
}
