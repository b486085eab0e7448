/**
 * Words of a text for searching, the same in every store: lower-cased words, identifiers whole and in their parts,
 * and for scripts without spaces the pairs of neighbouring characters.
 */

const cjk = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}";
/** Plain classes, no groups: a run of megabytes must not cost stack. */
const run = /[\p{L}\p{N}\p{M}_]+/gu;
const piece = new RegExp(`[${cjk}]+|[^${cjk}]+`, "gu");
const isCjk = new RegExp(`^[${cjk}]`, "u");
const part = /\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{N}+/gu;
const longestWord = 64;

/** In the order of the text, so that neighbours in it are neighbours here. */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const each of piecesOf(text)) {
    for (const word of isCjk.test(each) ? pairsOf(each) : identifierWords(each)) words.push(word);
  }
  return words;
}

/** Words that stand next to each other; of the last one only the beginning, if `prefix`. */
export interface SearchTerm {
  readonly words: readonly string[];
  readonly prefix: boolean;
}

/** What a query looks for. An entry with any of the terms is a hit; entries with all of the phrases come first. */
export interface SearchTerms {
  readonly any: readonly SearchTerm[];
  readonly all: readonly SearchTerm[];
}

/** The rest of a longer query changes no ranking that matters. */
const mostTerms = 64;

export function termsOf(query: string): SearchTerms {
  const all: SearchTerm[] = [];
  for (const each of piecesOf(query)) {
    if (!isCjk.test(each)) all.push({ words: [cut(each.toLowerCase())], prefix: false });
    else if (Array.from(each).length === 1) all.push({ words: [each], prefix: true });
    else all.push({ words: pairsOf(each).slice(0, -1), prefix: false });
  }
  // A run of Chinese is a whole sentence: any pair of its characters may be the word that is looked for.
  const any = all.flatMap(({ words, prefix }) => words.map((word) => ({ words: [word], prefix })));
  return { any: distinct(any), all: distinct(all) };
}

function distinct(terms: readonly SearchTerm[]): SearchTerm[] {
  const byText = new Map(terms.map((term) => [`${term.words.join(" ")}${term.prefix ? " *" : ""}`, term]));
  return [...byText.values()].slice(0, mostTerms);
}

/** How often a term occurs among the words of a text. */
export function countOccurrences(words: readonly string[], { words: wanted, prefix }: SearchTerm): number {
  let count = 0;
  for (let start = 0; start + wanted.length <= words.length; start++) {
    const fits = wanted.every((word, offset) => {
      const found = words[start + offset] ?? "";
      return prefix && offset === wanted.length - 1 ? found.startsWith(word) : found === word;
    });
    if (fits) count += 1;
  }
  return count;
}

/** Runs of letters, digits and underscores, parted where the script changes. */
function* piecesOf(text: string): Generator<string> {
  for (const [each] of text.normalize("NFKC").matchAll(run)) {
    for (const [part] of each.matchAll(piece)) yield part;
  }
}

/** Every pair, and the last character alone, so that each character begins a word. */
function pairsOf(text: string): string[] {
  const characters = Array.from(text);
  return characters.map((character, index) => character + (characters[index + 1] ?? ""));
}

function identifierWords(text: string): string[] {
  const whole = cut(text.toLowerCase());
  const parts = (text.match(part) ?? []).map((each) => cut(each.toLowerCase()));
  return parts.length > 1 ? [whole, ...parts] : [whole];
}

function cut(word: string): string {
  return word.length > longestWord ? word.slice(0, longestWord).toWellFormed() : word;
}
