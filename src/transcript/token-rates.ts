import type { Script } from "./character-classes.ts";

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
