import type { Script } from "./character-classes.ts";
import { firstScript, scriptNames } from "./character-classes.ts";

/**
 * What runs of characters come to in tokens, for two vocabularies: `o200k`, which current models have or come close to,
 * and `cl100k`, which stands for those that know little but English. The two differ by half and more outside of the
 * Latin script, so no one figure is right for both. Measured on catalogues of translated messages, manuals and sources,
 * and set between those and the samples of the tests, which are what people write.
 */
export type Vocabulary = "o200k" | "cl100k";

export interface TokenRates {
  /** By class: what a run takes, and what each unit in it. */
  readonly perRun: Float64Array;
  readonly perUnit: Float64Array;
  /** A letter of a long word in languages whose words are in more pieces: neighbours of English, and the others. */
  readonly foreign: number;
  readonly farForeign: number;
}

type Row = readonly [perRun: number, perUnit: number];

const o200k: Readonly<Record<Script, Row>> = {
  other: [0.2, 0.4],
  symbol: [0, 1],
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
  symbol: [0, 1.1],
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

function table(rows: Readonly<Record<Script, Row>>, foreign: number, farForeign: number): TokenRates {
  const perRun = new Float64Array(firstScript + scriptNames.length);
  const perUnit = new Float64Array(firstScript + scriptNames.length);
  for (const [index, name] of scriptNames.entries()) {
    perRun[firstScript + index] = rows[name][0];
    perUnit[firstScript + index] = rows[name][1];
  }
  return { perRun, perUnit, foreign, farForeign };
}

export const tokenRates: Readonly<Record<Vocabulary, TokenRates>> = {
  o200k: table(o200k, 0.11, 0.35),
  cl100k: table(cl100k, 0.27, 0.52),
};
