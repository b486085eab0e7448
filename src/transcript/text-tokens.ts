import type { State, TokenRates, Vocabulary } from "./token-steps.ts";
import {
  accented,
  beginsWord,
  classOf,
  classSpan,
  firstScript,
  firstState,
  isLateLetter,
  scriptNames,
  step,
  tokenRates,
} from "./token-steps.ts";

/** A typed array is read several times as fast as a string, so texts are copied here piece by piece. */
const chunk = new Uint16Array(16 * 1024);
const pieceBytes = Buffer.from(chunk.buffer);
const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
/** One accent in so many characters is that of a name in English. */
const strayAccent = 1000;
/** Accents a word from which on a text is surely not English; and those between its neighbours and the others. */
const notEnglish = 0.04;
const [near, far] = [0.15, 0.3];

/** About how many tokens a text is; one step a character, whatever the text. */
export function textTokens(text: string, vocabulary: Vocabulary = "o200k"): number {
  const table = tokenTable(vocabulary);
  let tokens = 0;
  for (let at = 0; at < text.length; at += chunk.length) {
    const part = text.length <= chunk.length ? text : text.slice(at, at + chunk.length);
    pieceBytes.write(part, "utf16le");
    if (!isLittleEndian) pieceBytes.swap16();
    tokens += pieceTokens(chunk, part.length, table, tokenRates[vocabulary]);
  }
  return tokens === 0 ? Math.min(1, text.length) : Math.max(1, Math.round(tokens));
}

function pieceTokens(units: Uint16Array, length: number, table: TokenTable, rates: TokenRates): number {
  const { tokens: added, next } = table;
  let tokens = 0;
  let state = 0;
  let accents = 0;
  for (let at = 0; at < length; at++) {
    const kind = classOf[units[at] as number] as number;
    // Not a branch: one that is never taken makes this loop half as fast.
    accents += kind === accented ? 1 : 0;
    const place = state + kind;
    tokens += added[place] as number;
    state = next[place] as number;
  }
  return accents * strayAccent < length
    ? tokens
    : tokens + foreignTokens(units, length, accents, table, rates);
}

/** What words take more in other languages than English. Accents are their sign: few of its neighbours', many of the others'. */
function foreignTokens(
  units: Uint16Array,
  length: number,
  accents: number,
  { next, words, lateLetters }: TokenTable,
  { foreign, farForeign }: TokenRates,
): number {
  let [begun, late, state] = [0, 0, 0];
  for (let at = 0; at < length; at++) {
    const place = state + (classOf[units[at] as number] as number);
    begun += words[place] as number;
    late += lateLetters[place] as number;
    state = next[place] as number;
  }
  const perWord = accents / Math.max(1, begun);
  const distance = Math.min(1, Math.max(0, perWord - near) / (far - near));
  return late * (Math.min(1, perWord / notEnglish) * foreign + distance * (farForeign - foreign));
}

/** Every step there is: at `state + class`, what it adds, and the state behind it. The first state is 0. */
export interface TokenTable {
  readonly tokens: Float64Array;
  readonly next: Uint16Array;
  /** Whether it begins a word, and whether it is a late letter of one. */
  readonly words: Uint8Array;
  readonly lateLetters: Uint8Array;
}

const tables = new Map<Vocabulary, TokenTable>();

/** Made when first asked for. */
export function tokenTable(vocabulary: Vocabulary): TokenTable {
  const known = tables.get(vocabulary);
  if (known !== undefined) return known;
  const table = makeTable(vocabulary);
  tables.set(vocabulary, table);
  return table;
}

function makeTable(vocabulary: Vocabulary): TokenTable {
  const states: State[] = [firstState];
  const places = new Map([[stateKey(firstState), 0]]);
  const steps: { place: number; tokens: number; next: number; state: State }[] = [];
  // States that are found on the way are added behind.
  for (const [from, state] of states.entries()) {
    for (let kind = 0; kind < firstScript + scriptNames.length; kind++) {
      const reached = step(state, kind, tokenRates[vocabulary]);
      const name = stateKey(reached.state);
      const found = places.get(name) ?? states.push(reached.state) - 1;
      places.set(name, found);
      steps.push({ place: from * classSpan + kind, next: found * classSpan, ...reached });
    }
  }
  const size = states.length * classSpan;
  const [tokens, next] = [new Float64Array(size), new Uint16Array(size)];
  const [words, lateLetters] = [new Uint8Array(size), new Uint8Array(size)];
  for (const each of steps) {
    tokens[each.place] = each.tokens;
    next[each.place] = each.next;
    words[each.place] = Number(beginsWord(each.state));
    lateLetters[each.place] = Number(isLateLetter(each.state));
  }
  return { tokens, next, words, lateLetters };
}

function stateKey({ kind, length, shorts, led }: State): number {
  return ((kind * 32 + length) * 8 + shorts) * 2 + Number(led);
}
