import {
  accented,
  digit,
  firstScript,
  lower,
  mark,
  newline,
  rule,
  scriptNames,
  space,
  upper,
} from "./character-classes.ts";
import type { TokenRates } from "./token-rates.ts";

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

export interface Step {
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
