/**
 * Words of a text for searching, the same in every store: lower-cased words, identifiers whole and in their parts,
 * and for scripts without spaces the pairs of neighbouring characters.
 */

const cjk = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}";
const piece = new RegExp(`[${cjk}]+|(?:(?![${cjk}])[\\p{L}\\p{N}\\p{M}_])+`, "gu");
const isCjk = new RegExp(`^[${cjk}]`, "u");
const part = /\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{N}+/gu;
const longestWord = 64;

/** In the order of the text, so that neighbours in it are neighbours here. */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const [run] of text.normalize("NFKC").matchAll(piece)) {
    if (isCjk.test(run)) words.push(...pairsOf(run));
    else words.push(...identifierWords(run));
  }
  return words;
}

/** What a query asks for: each must occur, its words as neighbours; of the last one only the beginning, if `prefix`. */
export interface SearchTerm {
  readonly words: readonly string[];
  readonly prefix: boolean;
}

export function termsOf(query: string): SearchTerm[] {
  const terms: SearchTerm[] = [];
  for (const [run] of query.normalize("NFKC").matchAll(piece)) {
    const characters = [...run];
    if (!isCjk.test(run)) terms.push({ words: [cut(run.toLowerCase())], prefix: false });
    else if (characters.length === 1) terms.push({ words: [run], prefix: true });
    else terms.push({ words: pairsOf(run).slice(0, -1), prefix: false });
  }
  return terms;
}

/** Every pair, and the last character alone, so that each character begins a word. */
function pairsOf(run: string): string[] {
  const characters = [...run];
  return characters.map((character, index) => character + (characters[index + 1] ?? ""));
}

function identifierWords(run: string): string[] {
  const whole = cut(run.toLowerCase());
  const parts = (run.match(part) ?? []).map((each) => cut(each.toLowerCase()));
  return parts.length > 1 ? [whole, ...parts] : [whole];
}

function cut(word: string): string {
  return word.length > longestWord ? word.slice(0, longestWord).toWellFormed() : word;
}
