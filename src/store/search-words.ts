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

/** What a query asks for: each must occur, its words as neighbours; of the last one only the beginning, if `prefix`. */
export interface SearchTerm {
  readonly words: readonly string[];
  readonly prefix: boolean;
}

export function termsOf(query: string): SearchTerm[] {
  const terms: SearchTerm[] = [];
  for (const each of piecesOf(query)) {
    if (!isCjk.test(each)) terms.push({ words: [cut(each.toLowerCase())], prefix: false });
    else if (Array.from(each).length === 1) terms.push({ words: [each], prefix: true });
    else terms.push({ words: pairsOf(each).slice(0, -1), prefix: false });
  }
  return terms;
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
