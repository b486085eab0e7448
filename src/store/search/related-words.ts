import { pairs, stems } from "./related-pairs.ts";

/**
 * Words with related meanings. A question often uses a different word than its answer does. The table is decoded on the
 * first search, because most processes that load this file never search.
 */

/** The digits of numbers in `pairs`: printable characters that need no escape in a template. */
export const pairDigits = Array.from({ length: 93 }, (_, at) => String.fromCharCode(0x21 + at))
  .filter((character) => !"$`\\".includes(character))
  .join("");
/** Follows the last number of a stem. */
export const pairEnd = "~";

interface RelatedStems {
  readonly stems: readonly string[];
  readonly places: ReadonlyMap<string, number>;
  /** For each stem, the positions of related stems. */
  readonly related: readonly (readonly number[])[];
}

let known: RelatedStems | null = null;

/** Returns stems that are related to a stem. */
export function relatedTo(word: string): string[] {
  known ??= decodePairs();
  const { stems: words, places, related } = known;
  return (related[places.get(word) ?? -1] ?? []).map((at) => words[at] ?? "");
}

function decodePairs(): RelatedStems {
  const words = decodeStems();
  const related: number[][] = words.map(() => []);
  const digits = new Uint8Array(128);
  for (const [value, character] of [...pairDigits].entries()) digits[character.charCodeAt(0)] = value;
  const [lineBreak, end] = Buffer.from(`\n${pairEnd}`);
  // Named once, because the bundler copies the table to every place that names it.
  const bytes = Buffer.from(pairs, "latin1");
  for (let [at, stem] = [0, 0]; at < bytes.length; at++) {
    const high = bytes[at] ?? 0;
    if (high === end) stem += 1;
    if (high === end || high === lineBreak) continue;
    at += 1;
    const other = (digits[high] ?? 0) * pairDigits.length + (digits[bytes[at] ?? 0] ?? 0);
    related[stem]?.push(other);
    related[other]?.push(stem);
  }
  return { stems: words, places: new Map(words.map((word, at) => [word, at])), related };
}

function decodeStems(): string[] {
  const words: string[] = [];
  let last = "";
  for (const [, common = "", rest = ""] of stems.matchAll(/([A-Z])([a-z]+)/g)) {
    last = last.slice(0, common.charCodeAt(0) - 65) + rest;
    words.push(last);
  }
  return words;
}
