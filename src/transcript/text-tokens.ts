import { accented, classOf, digit, lower, mark, newline, space, symbol, upper } from "./character-classes.ts";
import type { TokenRates, Vocabulary } from "./token-rates.ts";
import { tokenRates } from "./token-rates.ts";

/**
 * Tokenizers first cut a text where words, numbers, marks and lines end, and then look up what is between. The cuts are
 * made here as they make them; what is between is taken by its length and script.
 */

/** Tokens of a word by its letters. */
const byLetters = [0, 1, 1, 1, 1.01, 1.03, 1.05, 1.08, 1.13, 1.18, 1.25, 1.35, 1.5, 1.7, 1.9, 2.15];
const perLetterMore = 0.33;
const perCapitalMore = 0.17;
/** Tokens of a run of marks by how many different ones follow one another: three in `"},`, one in `=====`. */
const byMarks = [0, 1, 1.03, 1.25, 1.6, 2.1, 2.6];
const perMarkMore = 0.55;
const perRepeatedMark = 0.03;
/** A mark between two words belongs to the second one, as in `a.b`, and often to its token. */
const joinedMark = 0.2;
const digitsInToken = 3;
const spacesInToken = 80;
/** Letters beyond these take more in a language that the vocabulary has few words of. */
const shortWord = 4;
const longestWord = 24;
/** From this length on, a word in pieces this short is base64, hex or an id: nothing of it is in a vocabulary. */
const leastRandom = 16;
const randomPiece = 3.2;

/** A typed array is read several times as fast as a string, so texts are copied here piece by piece. */
const piece = new Uint16Array(16 * 1024);
const pieceBytes = Buffer.from(piece.buffer);
const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** About how many tokens a text is; in linear time, whatever the text. */
export function textTokens(text: string, vocabulary: Vocabulary = "o200k"): number {
  const rates = tokenRates[vocabulary];
  let tokens = 0;
  for (let at = 0; at < text.length; at += piece.length) {
    const part = text.length <= piece.length ? text : text.slice(at, at + piece.length);
    pieceBytes.write(part, "utf16le");
    if (!isLittleEndian) pieceBytes.swap16();
    tokens += pieceTokens(piece, part.length, rates);
  }
  return tokens === 0 ? 0 : Math.max(1, Math.round(tokens));
}

function pieceTokens(units: Uint16Array, length: number, rates: TokenRates): number {
  const { perRun, perUnit } = rates;
  let tokens = 0;
  let spaces = 0;
  let before = newline;
  let words = 0;
  let accents = 0;
  let lettersMore = 0;
  for (let at = 0; at < length; ) {
    const start = at;
    const kind = classAt(units, at);
    if (kind === space) {
      spaces++;
      at++;
      continue;
    }
    if (spaces > 0 && (spaces > 1 || kind === digit)) tokens += spaceTokens(spaces, kind);
    if (kind < space) {
      let bits = kind;
      for (at++; at < length; at++) {
        const each = classAt(units, at);
        if (each >= space) break;
        bits |= each;
      }
      tokens += bits === lower ? wordTokens(at - start) : mixedTokens(units, start, at);
      words++;
      if (at - start > shortWord) lettersMore += Math.min(at - start, longestWord) - shortWord;
      if ((bits & accented) !== 0) accents += countOf(accented, units, start, at);
    } else {
      at = endOfRun(units, at + 1, length, kind);
      if (kind === mark) tokens += markTokens(units, start, at, spaces > 0 || at === length);
      else if (kind === symbol) tokens += symbolTokens(units, start, at) * (perUnit[kind] as number);
      else if (kind !== newline)
        tokens += (perRun[kind] as number) + (perUnit[kind] as number) * (at - start);
      // The end of a line is in the token of the marks before it.
      else if (before !== mark || spaces > 0) tokens++;
    }
    before = kind;
    spaces = 0;
  }
  if (spaces > 0) tokens++;
  return accents === 0 ? tokens : tokens + lettersMore * foreignRate(rates, accents / words);
}

function classAt(units: Uint16Array, at: number): number {
  return classOf[units[at] as number] as number;
}

function endOfRun(units: Uint16Array, from: number, length: number, kind: number): number {
  let at = from;
  while (at < length && classAt(units, at) === kind) at++;
  return at;
}

function countOf(kind: number, units: Uint16Array, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end; at++) if (classAt(units, at) === kind) count++;
  return count;
}

/** Accents are the sign of another language than English: a few of them of its neighbours, many of the others. */
function foreignRate({ foreign, farForeign }: TokenRates, accentsPerWord: number): number {
  const far = Math.min(1, Math.max(0, accentsPerWord - 0.15) / 0.15);
  return Math.min(1, accentsPerWord * 25) * foreign + far * (farForeign - foreign);
}

/** One space goes with what follows it, except with a number; blanks at the end of a line go with the line's end. */
function spaceTokens(spaces: number, next: number): number {
  if (next === newline) return 0;
  const apart = next === digit ? 1 : 0;
  return spaces === 1 ? apart : apart + Math.ceil(spaces / spacesInToken);
}

function wordTokens(letters: number): number {
  const last = byLetters.length - 1;
  return letters <= last
    ? (byLetters[letters] as number)
    : (byLetters[last] as number) + (letters - last) * perLetterMore;
}

function markTokens(units: Uint16Array, start: number, end: number, isAlone: boolean): number {
  const length = end - start;
  if (length === 1) {
    const next = isAlone ? mark : classAt(units, end);
    return next < space && next !== digit ? joinedMark : 1;
  }
  const marks = changesIn(units, start, end);
  const last = byMarks.length - 1;
  const more = marks <= last ? 0 : (marks - last) * perMarkMore;
  return (byMarks[Math.min(marks, last)] as number) + more + (length - marks) * perRepeatedMark;
}

function symbolTokens(units: Uint16Array, start: number, end: number): number {
  const symbols = changesIn(units, start, end);
  return symbols + (end - start - symbols) * perRepeatedMark;
}

/** How many different units follow one another. */
function changesIn(units: Uint16Array, start: number, end: number): number {
  let changes = 1;
  for (let at = start + 1; at < end; at++) if (units[at] !== units[at - 1]) changes++;
  return changes;
}

/** A word of several pieces: `parseJson`, `README`, `café`, `x86`, and what only looks like one. */
function mixedTokens(units: Uint16Array, start: number, end: number): number {
  let pieces = 0;
  let known = 0;
  let random = 0;
  for (let at = start; at < end; pieces++) {
    const from = at;
    if (classAt(units, at) === digit) {
      at = endOfRun(units, at + 1, end, digit);
      const tokens = Math.ceil((at - from) / digitsInToken);
      known += tokens;
      random += tokens;
      continue;
    }
    at = endOfRun(units, at, end, upper);
    const capitals = at - from;
    while (at < end && (classAt(units, at) & (lower | accented)) !== 0) at++;
    known += casedTokens(capitals, at - from - capitals);
    random += at - from === 1 ? 1 : 0.45 + 0.5 * (at - from);
  }
  return end - start >= leastRandom && pieces * randomPiece >= end - start ? random : known;
}

/** The last capital before other letters begins a word with them. */
function casedTokens(capitals: number, others: number): number {
  if (others > 0 && capitals < 2) return wordTokens(capitals + others);
  const word = others > 0 ? wordTokens(1 + others) : 0;
  const alone = others > 0 ? capitals - 1 : capitals;
  return word + 1 + Math.max(0, alone - 2) * perCapitalMore;
}
