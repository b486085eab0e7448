/** Which class each UTF-16 unit is of, as tokenizers see it. */
const lower = 0;
const upper = 1;
const digit = 2;
/** A Latin letter that English lacks. */
export const accented = 3;
/** Classes below this one make words. */
const space = 4;
const newline = 5;
const mark = 6;
/** A mark that lines are drawn of. */
const rule = 7;

/** Scripts and signs that are counted by the unit, with the ranges that they take. */
const scripts = {
  symbol: [
    [0x80, 0xbf],
    [0x2000, 0x2e7f],
  ],
  cyrillic: [
    [0x401, 0x401],
    [0x410, 0x44f],
    [0x451, 0x451],
  ],
  /** Letters that Russian lacks: the sign of another language, whose words are in more pieces. */
  cyrillicOther: [
    [0x400, 0x400],
    [0x402, 0x40f],
    [0x450, 0x450],
    [0x452, 0x52f],
  ],
  greek: [
    [0x370, 0x3ff],
    [0x1f00, 0x1fff],
  ],
  hebrew: [[0x590, 0x5ff]],
  arabic: [
    [0x600, 0x77f],
    [0xfb50, 0xfdff],
    [0xfe70, 0xfefe],
  ],
  indic: [[0x900, 0xdff]],
  thai: [[0xe00, 0xeff]],
  hiragana: [[0x3040, 0x309f]],
  katakana: [
    [0x30a0, 0x30ff],
    [0xff61, 0xff9f],
  ],
  han: [
    [0x2e80, 0x2fff],
    [0x3100, 0x312f],
    [0x3400, 0x9fff],
    [0xf900, 0xfaff],
  ],
  hangul: [
    [0x1100, 0x11ff],
    [0x3130, 0x318f],
    [0xac00, 0xd7af],
  ],
  /** Full stops, commas and brackets of East Asia. */
  wideMark: [
    [0x3000, 0x303f],
    [0xff00, 0xff60],
    [0xffe0, 0xffef],
  ],
  /** Emoji and rare characters: each is two units. */
  surrogate: [[0xd800, 0xdfff]],
  /** What joins and varies characters, and accents that stand alone. */
  joiner: [
    [0x300, 0x36f],
    [0x200b, 0x200d],
    [0xfe00, 0xfe0f],
  ],
} as const;

type Script = keyof typeof scripts | "other";
/** In the order of their classes, from `firstScript` on. */
export const scriptNames = ["other", ...Object.keys(scripts)] as readonly Script[];
export const firstScript = 8;
/** More than there are classes, and a power of two. */
export const classSpan = 32;

export const classOf: Uint8Array = new Uint8Array(0x10000).fill(firstScript);

function assign(kind: number, ...ranges: readonly (readonly [number, number])[]): void {
  for (const [from, to] of ranges) classOf.fill(kind, from, to + 1);
}

for (const [index, ranges] of Object.values(scripts).entries()) assign(firstScript + 1 + index, ...ranges);
assign(mark, [0x00, 0x7f]);
for (const char of "=-_*#~.") assign(rule, [char.charCodeAt(0), char.charCodeAt(0)]);
assign(lower, [0x61, 0x7a]);
assign(upper, [0x41, 0x5a]);
assign(digit, [0x30, 0x39]);
assign(accented, [0xc0, 0x24f], [0x1e00, 0x1eff]);
assign(space, [0x09, 0x09], [0x20, 0x20]);
assign(newline, [0x0a, 0x0a], [0x0d, 0x0d]);

/**
 * What runs of characters come to in tokens, for two vocabularies: `o200k`, which current models have or come close to,
 * and `cl100k`, which stands for those that know little but English. The two differ by half and more outside of the
 * Latin script, so no one figure is right for both. Measured on catalogues of translated messages, manuals and sources,
 * and set between those and the samples of the tests, which are what people write.
 */
export type Vocabulary = "o200k" | "cl100k";

export interface TokenRates {
  /** What a run of a script takes, and what each unit in it. */
  readonly scripts: Readonly<Record<Script, Row>>;
  /** A letter of a long word in languages whose words are in more pieces: neighbours of English, and the others. */
  readonly foreign: number;
  readonly farForeign: number;
}

type Row = readonly [perRun: number, perUnit: number];

const o200k: Readonly<Record<Script, Row>> = {
  other: [0.2, 0.4],
  symbol: [0.6, 0.4],
  cyrillic: [0.58, 0.17],
  cyrillicOther: [0.2, 0.3],
  greek: [0.3, 0.36],
  hebrew: [0.25, 0.4],
  arabic: [0.45, 0.275],
  indic: [0.3, 0.29],
  thai: [0.2, 0.41],
  hiragana: [0, 0.67],
  katakana: [0, 0.63],
  han: [0, 0.74],
  hangul: [0.25, 0.65],
  wideMark: [0, 1],
  surrogate: [0, 0.9],
  joiner: [0, 0.8],
};

const cl100k: Readonly<Record<Script, Row>> = {
  other: [0.2, 1.9],
  symbol: [0.65, 0.45],
  cyrillic: [0.57, 0.395],
  cyrillicOther: [0.6, 0.5],
  greek: [0.2, 1],
  hebrew: [0.2, 1.13],
  arabic: [0.5, 0.76],
  indic: [0.2, 1.2],
  thai: [0.2, 0.93],
  hiragana: [0, 0.9],
  katakana: [0, 0.94],
  han: [0, 1.15],
  hangul: [0.3, 1.12],
  wideMark: [0, 1],
  surrogate: [0, 1.35],
  joiner: [0, 1],
};

export const tokenRates: Readonly<Record<Vocabulary, TokenRates>> = {
  o200k: { scripts: o200k, foreign: 0.11, farForeign: 0.35 },
  cl100k: { scripts: cl100k, foreign: 0.27, farForeign: 0.52 },
};

/**
 * Tokenizers first cut a text where words, numbers, marks and lines end, and then look up what is between. The cuts are
 * made here as they make them; what is between is taken by its length and script. All that must be remembered from one
 * character to the next is a `State`, of which there are so few that every step is known beforehand.
 */
export interface State {
  readonly kind: number;
  /** Of the piece so far, up to where it makes no more difference. */
  readonly length: number;
  /** In a word: how many short pieces came before this one. Many are base64, hex or an id, and in no vocabulary. */
  readonly shorts: number;
  /** A space stands before it. */
  readonly led: boolean;
}

interface Step {
  readonly tokens: number;
  readonly state: State;
}

export const firstState: State = { kind: newline, length: 1, shorts: 0, led: false };

/** Tokens of a word by its letters. */
const byLetters = [0, 1, 1, 1, 1.01, 1.03, 1.05, 1.08, 1.13, 1.18, 1.25, 1.35, 1.5, 1.7, 1.9, 2.15, 2.48];
const perLetterMore = 0.33;
const perCapitalMore = 0.17;
/** What each mark of a run adds; a line of the same ones next to nothing. */
const perMark = [0, 1, 0.03, 0.22, 0.35, 0.5];
const perRuleMore = 0.03;
/** A mark between two words belongs to the second one, as in `a.b`, and often to its token. */
const joinedMark = 0.2;
const perSpaceMore = 1 / 80;
const [secondRandomLetter, perRandomLetter] = [0.45, 0.58];
const [shortPiece, longPiece] = [3, 7];
const [leastShorts, mostShorts] = [3, 4];
const longWord = 5;

/** What a character of a class adds to a text that is in a state. */
export function step(from: State, kind: number, rates: TokenRates): Step {
  if (kind < space) return wordStep(from, kind === accented ? lower : kind);
  if (kind === space) return spaceStep(from);
  if (kind === newline) return newlineStep(from);
  if (kind === mark || kind === rule) return markStep(from, kind);
  const [perRun, perUnit] = rates.scripts[scriptNames[kind - firstScript] ?? "other"];
  return { tokens: from.kind === kind ? perUnit : perRun + perUnit, state: plain(kind) };
}

function plain(kind: number, length = 1): State {
  return { kind, length, shorts: 0, led: false };
}

/** One space goes with what follows it, except with a number. */
function spaceStep(from: State): Step {
  if (from.kind !== space) return { tokens: 0, state: plain(space) };
  return { tokens: from.length === 1 ? 1 : perSpaceMore, state: plain(space, 2) };
}

/** The end of a line is in one token with the marks before it, with blanks, and with further ends. */
function newlineStep(from: State): Step {
  const isFree = isMark(from.kind) || from.kind === newline || (from.kind === space && from.length > 1);
  return { tokens: isFree ? 0 : 1, state: plain(newline) };
}

function isMark(kind: number): boolean {
  return kind === mark || kind === rule;
}

function markStep(from: State, kind: number): Step {
  if (!isMark(from.kind)) return { tokens: 1, state: { ...plain(kind), led: from.kind === space } };
  if (from.kind === rule && kind === rule)
    return { tokens: perRuleMore, state: { ...from, length: Math.max(2, from.length) } };
  const length = Math.min(from.length + 1, perMark.length - 1);
  return { tokens: perMark[length] ?? 0, state: { ...from, kind, length } };
}

function wordStep(from: State, kind: number): Step {
  const isSamePiece = from.kind === kind || (from.kind === upper && kind === lower);
  if (isSamePiece) return kind === digit ? digitStep(from) : letterStep(from, kind);
  const shorts = from.kind < space ? shortsWith(from) : 0;
  const apart = kind === digit && from.kind === space ? 1 : 0;
  const joined = kind !== digit && isMark(from.kind) && from.length === 1 && !from.led ? joinedMark - 1 : 0;
  return { tokens: 1 + apart + joined, state: { kind, length: 1, shorts, led: false } };
}

function shortsWith({ length, shorts }: State): number {
  if (length <= shortPiece) return Math.min(mostShorts, shorts + 1);
  return length < longPiece ? Math.max(0, shorts - 1) : 0;
}

/** Three digits are a token; beyond six it makes no difference how many there are. */
function digitStep(from: State): Step {
  const length = from.length === 6 ? 4 : from.length + 1;
  return { tokens: length === 4 ? 1 : 0, state: { ...from, length } };
}

/** The last of several capitals before other letters begins a word with them: `JSONLine`. */
function letterStep(from: State, kind: number): Step {
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

export function beginsWord({ kind, length, shorts }: State): boolean {
  return (kind === lower || kind === upper) && length === 1 && shorts < leastShorts;
}

/** Whether a letter is one of those that take more in a language that the vocabulary has few words of. */
export function isLateLetter({ kind, length, shorts }: State): boolean {
  return (kind === lower || kind === upper) && length >= longWord && shorts < leastShorts;
}
