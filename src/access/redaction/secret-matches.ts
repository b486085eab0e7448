import { cutText, endOfText } from "../../core/text.ts";

/** The character sets for tokens, as bits in one lookup table. */
const sets = {
  digit: "0-9",
  hex: "0-9a-f",
  upper: "A-Z0-9",
  alnum: "A-Za-z0-9",
  word: "A-Za-z0-9_",
  url: "A-Za-z0-9_\\-",
  dotted: "A-Za-z0-9_\\-.",
  base64: "A-Za-z0-9+/=",
  bearer: "A-Za-z0-9._~+/=\\-",
  path: "A-Za-z0-9_\\-/@.",
  key: "A-Za-z0-9_.\\-",
} as const;

export type CharacterSet = keyof typeof sets;

const names = Object.keys(sets) as CharacterSet[];
const table = new Uint16Array(128);
for (const [place, name] of names.entries()) {
  const pattern = new RegExp(`[${sets[name]}]`);
  for (let code = 0; code < 128; code++)
    if (pattern.test(String.fromCharCode(code))) table[code] = (table[code] ?? 0) | (1 << place);
}

export function setIndexOf(set: CharacterSet): number {
  return names.indexOf(set);
}

/** Returns the bit for a set, for `isInSet`. */
export function setBitOf(set: CharacterSet): number {
  return 1 << setIndexOf(set);
}

const setCount = names.length;

export function isInSet(bit: number, code: number): boolean {
  return code < 128 && ((table[code] ?? 0) & bit) !== 0;
}

const alnum = setBitOf("alnum");

/** Whether a token can start after this character. */
export function isBoundary(code: number): boolean {
  return !isInSet(alnum, code);
}

/**
 * Finds where a run of characters from one set ends. The last run for each set is cached, so even if a rule can start
 * at every position, the text is read only once per set.
 */
export class CharacterRuns {
  readonly #text: string;
  readonly #from = new Int32Array(setCount);
  readonly #to = new Int32Array(setCount);

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * Returns the first index at or after `from` that is outside the set. A run longer than `most` might be reported to
   * end at any index after `from + most`.
   */
  end(set: number, from: number, most: number): number {
    const text = this.#text;
    const knownFrom = this.#from[set] ?? 0;
    const knownTo = this.#to[set] ?? 0;
    const isKnown = from >= knownFrom && from <= knownTo;
    let to = isKnown ? knownTo : from;
    const bit = 1 << set;
    const limit = Math.min(text.length, from + most + 1);
    while (to < limit && isInSet(bit, text.charCodeAt(to))) to++;
    this.#from[set] = isKnown ? knownFrom : from;
    this.#to[set] = to;
    return to;
  }
}

/** The part of a text that has arrived so far. */
export interface ScanPage {
  readonly text: string;
  /** `true` if no more text follows. */
  readonly isWhole: boolean;
  readonly runs: CharacterRuns;
  /** Where the last secret ended. Rules do not look back past it. */
  lastEnd: number;
}

/** A secret in the text. It is replaced by `instead` if set, otherwise by its mask. */
export interface Span {
  readonly from: number;
  readonly to: number;
  readonly instead?: string;
}

/** The text ends too early to decide. */
export const needMore = "more";

/** A rule's result at an index. Rules look back and ahead by a bounded distance. */
export type Match = Span | null | typeof needMore;

/** A shorter secret is hidden completely because a partial mask would reveal too much of it. */
export const minPartialMask = 18;
const head = 6;
export const tailLength = 4;
const ellipsis = "…";
export const fullMask = "***";

/** Masks a secret. Enough of a long secret stays visible to identify it. A short secret is hidden completely. */
export function mask(secret: string): string {
  if (secret.length < minPartialMask || isEscapedAtEnds(secret)) return fullMask;
  return `${cutText(secret, head)}${ellipsis}${endOfText(secret, tailLength)}`;
}

/** Whether this is already a mask. Masking it again would remove the visible part. */
export function isMasked(text: string): boolean {
  if (text === fullMask) return true;
  if (text.length > head + 1 + tailLength || text.length < head + tailLength - 1) return false;
  return text[head] === ellipsis || text[head - 1] === ellipsis;
}

/** Returns the number of characters at `at` that end a mask and therefore are not part of a name. */
export function maskTailLength(units: Uint16Array, at: number): number {
  if (at < 2 || units[at - 1] !== ellipsis.charCodeAt(0)) return 0;
  return /\S/.test(String.fromCharCode(units[at - 2] as number)) ? tailLength : 0;
}

/** Whether the second half of a mask starts at `at`. Reads `maskEndLength` characters. */
export function hasMaskEnd(text: string, at: number): boolean {
  return text[at] === ellipsis && /^\S{3}/.test(text.slice(at + 1, at + maskEndLength));
}

export const maskEndLength = 4;

/** Splitting an escape sequence would break the surrounding JSON or code. */
function isEscapedAtEnds(secret: string): boolean {
  return secret.slice(0, head).includes("\\") || secret.slice(-tailLength - 1).includes("\\");
}
