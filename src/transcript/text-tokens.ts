import type { TokenizerState, Vocabulary } from "./tokenizer-states.ts";
import {
  accented,
  beginsWord,
  classCount,
  classOf,
  computeTransition,
  firstState,
  isLateLetter,
} from "./tokenizer-states.ts";

/** Reading a typed array is several times faster than reading a string, so text is copied in chunks. */
const chunk = new Uint16Array(16 * 1024);
const chunkBytes = Buffer.from(chunk.buffer);
const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
/** English text can contain up to one accent per this many characters. */
const strayAccent = 1000;
/**
 * Accents per word. Text above the first value is not English. The other two values separate languages related to
 * English from distant ones.
 */
const notEnglish = 0.04;
const [near, far] = [0.15, 0.3];

/** Additional tokens for each letter late in a word, for languages related to English and for distant languages. */
const lateLetterTokens: Readonly<Record<Vocabulary, readonly [related: number, distant: number]>> = {
  o200k: [0.11, 0.35],
  cl100k: [0.27, 0.52],
};
/** More tokens than a chunk can have. Accents are counted in multiples of it, so that one sum holds both counts. */
const perAccent = 2 ** 20;
/** A power of two above the number of classes. */
const classSpan = 32;

/** Estimates the number of tokens in a string, with one step per character. */
export function textTokens(text: string, vocabulary: Vocabulary = "o200k"): number {
  const table = tokenTable(vocabulary);
  let tokens = 0;
  for (let at = 0; at < text.length; at += chunk.length) {
    const part = text.length <= chunk.length ? text : text.slice(at, at + chunk.length);
    chunkBytes.write(part, "utf16le");
    if (!isLittleEndian) chunkBytes.swap16();
    tokens += chunkTokens(chunk, part.length, table, vocabulary);
  }
  return tokens === 0 ? Math.min(1, text.length) : Math.max(1, Math.round(tokens));
}

function chunkTokens(units: Uint16Array, length: number, table: TokenTable, vocabulary: Vocabulary): number {
  const { tokens: added, next } = table;
  let sum = 0;
  let state = 0;
  for (let at = 0; at < length; at++) {
    const place = state + (classOf[units[at] as number] as number);
    sum += added[place] as number;
    state = next[place] as number;
  }
  const accents = Math.floor(sum / perAccent);
  const tokens = sum - accents * perAccent;
  return accents * strayAccent < length
    ? tokens
    : tokens + foreignTokens(units, length, accents, table, vocabulary);
}

/**
 * Returns the additional tokens for words in languages other than English. Accents per word indicate how distant the
 * language is.
 */
function foreignTokens(
  units: Uint16Array,
  length: number,
  accents: number,
  { next, words, lateLetters }: TokenTable,
  vocabulary: Vocabulary,
): number {
  let [begun, late, state] = [0, 0, 0];
  for (let at = 0; at < length; at++) {
    const place = state + (classOf[units[at] as number] as number);
    begun += words[place] as number;
    late += lateLetters[place] as number;
    state = next[place] as number;
  }
  const [related, distant] = lateLetterTokens[vocabulary];
  const perWord = accents / Math.max(1, begun);
  const distance = Math.min(1, Math.max(0, perWord - near) / (far - near));
  return late * (Math.min(1, perWord / notEnglish) * related + distance * (distant - related));
}

/**
 * The index is `state + class`. The values are the tokens that a character adds and the next state. The first state is
 * 0.
 */
interface TokenTable {
  /** An accented letter also adds `perAccent`. */
  readonly tokens: Float64Array;
  readonly next: Uint16Array;
  /** Whether the character starts a word, and whether it comes late in one. */
  readonly words: Uint8Array;
  readonly lateLetters: Uint8Array;
}

const tables = new Map<Vocabulary, TokenTable>();

export function tokenTable(vocabulary: Vocabulary): TokenTable {
  const known = tables.get(vocabulary);
  if (known !== undefined) return known;
  const table = makeTable(vocabulary);
  tables.set(vocabulary, table);
  return table;
}

function makeTable(vocabulary: Vocabulary): TokenTable {
  const states: TokenizerState[] = [firstState];
  const places = new Map([[stateKey(firstState), 0]]);
  const transitions: { place: number; tokens: number; next: number; state: TokenizerState }[] = [];
  // States found during the iteration are appended and also visited.
  for (const [from, state] of states.entries()) {
    for (let kind = 0; kind < classCount; kind++) {
      const reached = computeTransition(state, kind, vocabulary);
      const name = stateKey(reached.state);
      const found = places.get(name) ?? states.push(reached.state) - 1;
      places.set(name, found);
      const tokens = reached.tokens + (kind === accented ? perAccent : 0);
      transitions.push({ place: from * classSpan + kind, next: found * classSpan, ...reached, tokens });
    }
  }
  const size = states.length * classSpan;
  const [tokens, next] = [new Float64Array(size), new Uint16Array(size)];
  const [words, lateLetters] = [new Uint8Array(size), new Uint8Array(size)];
  for (const each of transitions) {
    tokens[each.place] = each.tokens;
    next[each.place] = each.next;
    words[each.place] = Number(beginsWord(each.state));
    lateLetters[each.place] = Number(isLateLetter(each.state));
  }
  return { tokens, next, words, lateLetters };
}

function stateKey({ kind, length, shorts, led }: TokenizerState): number {
  return ((kind * 32 + length) * 8 + shorts) * 2 + Number(led);
}
