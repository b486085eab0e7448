/** The character classes of UTF-16 units that tokenizers distinguish. */
const lower = 0;
const upper = 1;
const digit = 2;
/** A Latin letter that English does not use. */
export const accented = 3;
/** Classes below this one form words. */
const space = 4;
const newline = 5;
const mark = 6;
/** A character used to draw horizontal rules. */
const rule = 7;

/**
 * `o200k` is close to the vocabulary of current models. `cl100k` represents models that were trained mostly on English.
 * For text in other scripts than Latin, their token counts differ by half or more. All rates were fitted to translated message catalogs,
 * manuals and source code, and then adjusted to the samples in the tests.
 */
export type Vocabulary = "o200k" | "cl100k";

type ScriptRates = readonly [perRun: number, perUnit: number];

interface ScriptInfo extends Readonly<Record<Vocabulary, ScriptRates>> {
  /** Ranges of UTF-16 units in hexadecimal. */
  readonly ranges: string;
  /** `true` if the characters are letters of Latin words. The rates are added to those of the word. */
  readonly isLatin?: true;
}

/** Scripts that are counted per unit. Characters outside all ranges are `other`. */
const scripts: Readonly<Record<string, ScriptInfo>> = {
  other: { ranges: "", o200k: [0.2, 0.4], cl100k: [0.2, 1.9] },
  symbol: { ranges: "80-bf 2000-2e7f", o200k: [0.6, 0.4], cl100k: [0.65, 0.45] },
  cyrillic: { ranges: "401 410-44f 451", o200k: [0.58, 0.17], cl100k: [0.57, 0.395] },
  /** Letters that Russian does not use. They indicate another language with more tokens per word. */
  cyrillicOther: { ranges: "400 402-40f 450 452-52f", o200k: [0.2, 0.3], cl100k: [0.6, 0.5] },
  greek: { ranges: "370-3ff 1f00-1fff", o200k: [0.3, 0.36], cl100k: [0.2, 1] },
  hebrew: { ranges: "590-5ff", o200k: [0.25, 0.4], cl100k: [0.2, 1.13] },
  arabic: { ranges: "600-77f fb50-fdff fe70-fefe", o200k: [0.45, 0.275], cl100k: [0.5, 0.76] },
  indic: { ranges: "900-dff", o200k: [0.3, 0.29], cl100k: [0.2, 1.2] },
  thai: { ranges: "e00-eff", o200k: [0.2, 0.41], cl100k: [0.2, 0.93] },
  hiragana: { ranges: "3040-309f", o200k: [0, 0.67], cl100k: [0, 0.9] },
  katakana: { ranges: "30a0-30ff ff61-ff9f", o200k: [0, 0.63], cl100k: [0, 0.94] },
  /** Latin letters that only Vietnamese uses. */
  vietnamese: { ranges: "1ea0-1ef9", isLatin: true, o200k: [0, 0.27], cl100k: [0, 1.85] },
  han: { ranges: "2e80-2fff 3100-312f 3400-9fff f900-faff", o200k: [0, 0.74], cl100k: [0, 1.15] },
  /** Characters that Simplified Chinese does not use. */
  hanTraditional: { ranges: "", o200k: [0, 1.3], cl100k: [0, 2.1] },
  hangul: { ranges: "1100-11ff 3130-318f ac00-d7af", o200k: [0.25, 0.65], cl100k: [0.3, 1.12] },
  eastAsianPunctuation: { ranges: "3000-303f ff00-ff60 ffe0-ffef", o200k: [0, 1], cl100k: [0, 1] },
  /** Emoji and rare characters take two units each. */
  surrogate: { ranges: "d800-dfff", o200k: [0, 0.9], cl100k: [0, 1.35] },
  /** Joiners, variation selectors and combining accents. */
  joiner: { ranges: "300-36f 200b-200d fe00-fe0f", o200k: [0, 0.8], cl100k: [0, 1] },
};

/** In the order of their classes, starting at `firstScript`. */
const scriptInfos = Object.values(scripts);
const firstScript = 8;
export const classCount = firstScript + scriptInfos.length;

export const classOf: Uint8Array = new Uint8Array(0x10000).fill(firstScript);

function assign(kind: number, ranges: string): void {
  for (const range of ranges.split(" ").filter((each) => each !== "")) {
    const [from = 0, to = from] = range.split("-").map((unit) => Number.parseInt(unit, 16));
    classOf.fill(kind, from, to + 1);
  }
}

assign(accented, "c0-24f 1e00-1eff");
for (const [index, { ranges }] of scriptInfos.entries()) assign(firstScript + index, ranges);
assign(mark, "0-7f");
for (const char of "=-_*#~.") classOf[char.charCodeAt(0)] = rule;
assign(lower, "61-7a");
assign(upper, "41-5a");
assign(digit, "30-39");
assign(space, "9 20");
assign(newline, "a d");
splitHan();

/**
 * Separates the characters that Simplified Chinese uses from all others. They are the characters of GB 2312, which take
 * two bytes each in GBK.
 */
function splitHan(): void {
  const [han, traditional] = ["han", "hanTraditional"].map(
    (name) => firstScript + Object.keys(scripts).indexOf(name),
  ) as [number, number];
  for (let unit = 0; unit < classOf.length; unit++) if (classOf[unit] === han) classOf[unit] = traditional;
  const bytes: number[] = [];
  for (let first = 0xb0; first <= 0xf7; first++)
    for (let second = 0xa1; second <= 0xfe; second++) bytes.push(first, second);
  for (const char of new TextDecoder("gbk").decode(Uint8Array.from(bytes))) {
    const unit = char.charCodeAt(0);
    if (classOf[unit] === traditional) classOf[unit] = han;
  }
}

/**
 * Tokenizers split text into words, numbers, punctuation and line ends, and then look up the pieces. This estimator
 * splits text in the same way and estimates each piece by its length and script. A `TokenizerState` is everything that
 * carries over from one character to the next. There are so few states that every transition is computed in advance.
 */
export interface TokenizerState {
  readonly kind: number;
  /** The length of the piece so far, capped where it no longer matters. */
  readonly length: number;
  /** Within a word, the number of short pieces before this one. Many short pieces indicate base64, hex or an ID. */
  readonly shorts: number;
  /** `true` if a space comes before the piece. */
  readonly led: boolean;
}

interface Transition {
  readonly tokens: number;
  readonly state: TokenizerState;
}

export const firstState: TokenizerState = { kind: newline, length: 1, shorts: 0, led: false };

/** Tokens in a word, by its number of letters. */
const byLetters = [0, 1, 1, 1, 1.01, 1.03, 1.05, 1.08, 1.13, 1.18, 1.25, 1.35, 1.5, 1.7, 1.9, 2.15, 2.48];
const perLetterMore = 0.33;
const perCapitalMore = 0.17;
/** The number of tokens that each punctuation mark in a run adds. */
const perMark = [0, 1, 0.03, 0.22, 0.35, 0.5];
const perRuleMore = 0.03;
/** A mark between two words, as in `a.b`, is often part of the second word's token. */
const joinedMark = 0.2;
const perSpaceMore = 1 / 80;
const [secondRandomLetter, perRandomLetter] = [0.45, 0.58];
const [shortPiece, longPiece] = [3, 7];
const [leastShorts, mostShorts] = [3, 4];
const longWord = 5;

/** Returns the number of tokens that a character of class `kind` adds after a state. */
export function computeTransition(from: TokenizerState, kind: number, vocabulary: Vocabulary): Transition {
  if (kind < space) return wordTransition(from, kind === accented ? lower : kind);
  if (kind === space) return spaceTransition(from);
  if (kind === newline) return newlineTransition(from);
  if (kind === mark || kind === rule) return markTransition(from, kind);
  const info = scriptInfos[kind - firstScript] as ScriptInfo;
  const [perRun, perUnit] = info[vocabulary];
  if (info.isLatin === true) {
    const { tokens, state } = wordTransition(from, lower);
    return { tokens: tokens + perUnit, state };
  }
  return { tokens: from.kind === kind ? perUnit : perRun + perUnit, state: plain(kind) };
}

function plain(kind: number, length = 1): TokenizerState {
  return { kind, length, shorts: 0, led: false };
}

/** A single space is part of the next piece, unless the next piece is a number. */
function spaceTransition(from: TokenizerState): Transition {
  if (from.kind !== space) return { tokens: 0, state: plain(space) };
  return { tokens: from.length === 1 ? 1 : perSpaceMore, state: plain(space, 2) };
}

/** A line end shares a token with the punctuation, blanks and line ends before it. */
function newlineTransition(from: TokenizerState): Transition {
  const isFree = isMark(from.kind) || from.kind === newline || (from.kind === space && from.length > 1);
  return { tokens: isFree ? 0 : 1, state: plain(newline) };
}

function isMark(kind: number): boolean {
  return kind === mark || kind === rule;
}

function markTransition(from: TokenizerState, kind: number): Transition {
  if (!isMark(from.kind)) return { tokens: 1, state: { ...plain(kind), led: from.kind === space } };
  if (from.kind === rule && kind === rule)
    return { tokens: perRuleMore, state: { ...from, length: Math.max(2, from.length) } };
  const length = Math.min(from.length + 1, perMark.length - 1);
  return { tokens: perMark[length] ?? 0, state: { ...from, kind, length } };
}

function wordTransition(from: TokenizerState, kind: number): Transition {
  const isSamePiece = from.kind === kind || (from.kind === upper && kind === lower);
  if (isSamePiece) return kind === digit ? digitTransition(from) : letterTransition(from, kind);
  const shorts = from.kind < space ? shortsWith(from) : 0;
  const apart = kind === digit && from.kind === space ? 1 : 0;
  const joined = kind !== digit && isMark(from.kind) && from.length === 1 && !from.led ? joinedMark - 1 : 0;
  return { tokens: 1 + apart + joined, state: { kind, length: 1, shorts, led: false } };
}

function shortsWith({ length, shorts }: TokenizerState): number {
  if (length <= shortPiece) return Math.min(mostShorts, shorts + 1);
  return length < longPiece ? Math.max(0, shorts - 1) : 0;
}

/** Three digits are one token. Beyond six digits, the exact number no longer matters. */
function digitTransition(from: TokenizerState): Transition {
  const length = from.length === 6 ? 4 : from.length + 1;
  return { tokens: length === 4 ? 1 : 0, state: { ...from, length } };
}

/** The last of several capital letters starts a word with the letters after it, as in `JSONLine`. */
function letterTransition(from: TokenizerState, kind: number): Transition {
  const isRandom = from.shorts >= leastShorts;
  const longest = isRandom || kind === upper ? longPiece : byLetters.length - 1;
  const length = Math.min(from.length + 1, longest);
  const on = { ...from, kind, length };
  if (isRandom) return { tokens: length === 2 ? secondRandomLetter : perRandomLetter, state: on };
  if (kind === upper) return { tokens: length > 2 ? perCapitalMore : 0, state: on };
  if (from.kind === upper && from.length > 1)
    return { tokens: from.length > 2 ? 1 - perCapitalMore : 1, state: { ...on, length: 2 } };
  const more =
    from.length === length ? perLetterMore : (byLetters[length] ?? 0) - (byLetters[length - 1] ?? 0);
  return { tokens: more, state: on };
}

export function beginsWord({ kind, length, shorts }: TokenizerState): boolean {
  return (kind === lower || kind === upper) && length === 1 && shorts < leastShorts;
}

/**
 * Whether the last character is a letter late in a long word. Such letters cost more in languages that are rare in the
 * vocabulary.
 */
export function isLateLetter({ kind, length, shorts }: TokenizerState): boolean {
  return (kind === lower || kind === upper) && length >= longWord && shorts < leastShorts;
}
