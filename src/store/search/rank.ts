import { mostMarks } from "./answer-marks.ts";
import type { QueryTerms } from "./query-terms.ts";
import type { WordCodes } from "./words.ts";
import { codeOf } from "./words.ts";

/**
 * The order of search hits, the same for every store. A store finds entries with rare words of the query, and this file
 * scores them: BM25 over any word, a bonus for words that are close together, a share of the scores of the messages
 * before and after, and a small advantage for newer entries.
 */

/**
 * Statistics for the entries that the caller is allowed to see. If other entries were included, the order of hits would
 * reveal information about them.
 */
export interface SearchStatistics {
  readonly entries: number;
  /** Number of entries with each term. */
  readonly holding: readonly number[];
}

/** A term of the query that occurs in an entry's session. */
export interface ContextTerm {
  readonly term: number;
  /** How many entries away the term occurs, infinite if unknown. */
  readonly distance: number;
}

/** The values that determine an entry's score. */
export interface ScoredText {
  readonly role: string;
  /** Length in words. */
  readonly length: number;
  readonly codes: WordCodes;
  /** The terms that the index found in the entry, because the codes of a long entry are truncated. */
  readonly held: readonly number[];
}

/** An entry's score without its neighbors. */
export interface OwnScore {
  /** Higher is better. 0 if the entry contains no word of the query. */
  readonly score: number;
  /**
   * The terms of the query that the entry contains, as positions in `terms`. Words with related meanings are not
   * matches.
   */
  readonly matched: readonly number[];
  readonly hasAllWords: boolean;
  /** How well the kind of text fits the question, regardless of its words. Multiplies the final score. */
  readonly factor: number;
}

export const noScore: OwnScore = { score: 0, matched: [], hasAllWords: false, factor: 1 };

/** The values that hits are sorted by. */
export interface HitPlace {
  /** Newer entries have higher numbers. */
  readonly row: number;
  readonly hasAllWords: boolean;
  /** Higher is better. */
  readonly score: number;
}

/** The maximum number of entries that are scored. Entries with the rarest words are scored first. */
export const mostScored = 300;
/** The number of best entries whose neighbors can also be hits. */
export const mostSources = 50;
/** Neighbors in the session's order. A message that follows a hit is often its answer. */
export const neighborShares: readonly { readonly distance: number; readonly share: number }[] = [
  { distance: -1, share: 0.7 },
  { distance: 1, share: 0.6 },
  { distance: -2, share: 0.35 },
  { distance: 2, share: 0.3 },
];

/** Tuned on half of the questions in `test/golden/recall`. */
const tuning = {
  /** A fixed average length in words. The actual mean would reveal the length of entries that the caller cannot see. */
  ordinaryLength: 60,
  saturation: 1.2,
  lengthShare: 0.3,
  /** The weight of a word with a related meaning. */
  relation: 0.35,
  /** The weight of a word that occurs anywhere in the session. */
  session: 0.5,
  /** The additional weight of such a word if it occurs nearby. Halves every `passage` entries. */
  nearby: 0.5,
  passage: 16,
  closeness: 0.5,
  window: 8,
  doubling: 20,
  /** The factor for a text with a time or a number if the question asks for one. */
  asked: 1.3,
  /** The factor for a text that ends with a question mark. Answers rarely do. */
  question: 0.75,
  /** The factor for a message from the user, who knows more about themselves than others do. */
  user: 1.05,
};

/** How a word relates to the query. */
interface WordMeaning {
  /** The position of the word in `terms`, or -1. */
  term: number;
  /** The positions of terms with a related meaning. */
  readonly related: number[];
}

export class Ranker {
  readonly #query: QueryTerms;
  readonly #weights: readonly number[];
  readonly #meanings = new Map<number, WordMeaning>();
  readonly #factors: ReadonlyMap<number, number>;
  readonly #sequences: readonly (readonly number[])[];
  /** Positions in `terms` of words that follow each other in the query. */
  readonly #pairs: readonly (readonly [number, number])[];

  constructor(query: QueryTerms, { entries, holding }: SearchStatistics) {
    this.#query = query;
    this.#weights = query.terms.map(({ weight }, at) => weight * rarity(entries, holding[at] ?? 0));
    for (const [at, { word, related }] of query.terms.entries()) {
      this.#meaningOf(codeOf(word)).term = at;
      for (const other of related) this.#meaningOf(codeOf(other)).related.push(at);
    }
    this.#factors = new Map([
      ...query.asked.map((mark) => [codeOf(mark), tuning.asked] as const),
      ...(query.isSentence ? [[codeOf("$question"), tuning.question] as const] : []),
    ]);
    this.#sequences = query.all.map((words) => words.map(codeOf));
    const order = this.#sequences.flat().map((code) => this.#termOf(code));
    this.#pairs = order.slice(1).map((next, at) => [order[at] ?? -1, next] as const);
  }

  #meaningOf(code: number): WordMeaning {
    const meaning = this.#meanings.get(code) ?? { term: -1, related: [] };
    this.#meanings.set(code, meaning);
    return meaning;
  }

  #termOf(code: number): number {
    return this.#meanings.get(code)?.term ?? -1;
  }

  get weights(): readonly number[] {
    return this.#weights;
  }

  /** Scores an entry by its own words. */
  own({ codes, length, held, role }: ScoredText): OwnScore {
    const counts = this.#weights.map(() => 0);
    const places: number[][] = this.#weights.map(() => []);
    const isRelated = this.#weights.map(() => false);
    const end = codes.indexOf(0);
    // Uses an index instead of `entries`, because a search spends most of its time here.
    for (let at = 0; at < codes.length; at++) {
      const meaning = this.#meanings.get(codes[at] ?? 0);
      if (meaning === undefined) continue;
      const { term, related } = meaning;
      if (term >= 0) {
        counts[term] = (counts[term] ?? 0) + 1;
        if (at < end) places[term]?.push(at);
      }
      for (const each of related) isRelated[each] = true;
    }
    for (const term of held) counts[term] = Math.max(1, counts[term] ?? 0);
    const matched = [...counts.keys()].filter((term) => (counts[term] ?? 0) > 0);
    const score = this.#relevance(counts, isRelated, length) + this.#closeness(places);
    return {
      score,
      matched,
      hasAllWords: this.#hasAll(codes, end, counts),
      factor: this.#factorOf(codes, end, role),
    };
  }

  /**
   * Returns the final score of an entry. `around` are the scores of its neighbors in the order of `neighborShares`. A
   * long session has many topics, so its words count more the closer they are.
   */
  final(own: OwnScore, around: readonly OwnScore[], inSession: Iterable<ContextTerm>, time: number): number {
    let score = own.score;
    for (const [at, { share }] of neighborShares.entries()) score += share * (around[at]?.score ?? 0);
    for (const { term, distance } of inSession) {
      const share = tuning.session + tuning.nearby * 2 ** (-distance / tuning.passage);
      score += share * (this.#weights[term] ?? 0);
    }
    return score * own.factor * recency(time);
  }

  /** Whether the messages next to an entry are hits even if they contain no word of the query. */
  isSource({ matched }: OwnScore): boolean {
    return this.#query.isSentence && matched.length > 0;
  }

  #relevance(counts: readonly number[], isRelated: readonly boolean[], length: number): number {
    const { saturation, lengthShare, ordinaryLength, relation } = tuning;
    const norm = saturation * (1 - lengthShare + (lengthShare * length) / ordinaryLength);
    let score = 0;
    for (const [term, weight] of this.#weights.entries()) {
      const count = counts[term] ?? 0;
      if (count > 0) score += (weight * count * (saturation + 1)) / (count + norm);
      else if (isRelated[term]) score += (relation * weight * (saturation + 1)) / (1 + norm);
    }
    return score;
  }

  /** Words that follow each other in the query count more the closer they are in the text. */
  #closeness(places: readonly (readonly number[])[]): number {
    let score = 0;
    for (const [one, other] of this.#pairs) {
      const distance = shortestDistance(places[one] ?? [], places[other] ?? []);
      if (distance > tuning.window) continue;
      score += (tuning.closeness * Math.min(this.#weights[one] ?? 0, this.#weights[other] ?? 0)) / distance;
    }
    return score;
  }

  /** The marks follow the zero after the words. */
  #factorOf(codes: WordCodes, end: number, role: string): number {
    let factor = role === "user" ? tuning.user : 1;
    for (let at = end + 1; at <= end + mostMarks; at++) factor *= this.#factors.get(codes[at] ?? 0) ?? 1;
    return factor;
  }

  #hasAll(codes: WordCodes, end: number, counts: readonly number[]): boolean {
    return this.#sequences.every((sequence) => {
      const [first = 0] = sequence;
      if (sequence.length === 1) return (counts[this.#termOf(first)] ?? 0) > 0;
      for (let at = codes.indexOf(first); at !== -1 && at < end; at = codes.indexOf(first, at + 1))
        if (sequence.every((code, offset) => codes[at + offset] === code)) return true;
      return false;
    });
  }
}

function rarity(entries: number, holding: number): number {
  return Math.log(1 + (Math.max(0, entries - holding) + 0.5) / (holding + 0.5));
}

/** Both lists are sorted. */
function shortestDistance(ones: readonly number[], others: readonly number[]): number {
  let best = Number.POSITIVE_INFINITY;
  for (let [one, other] = [0, 0]; one < ones.length && other < others.length; ) {
    const difference = (others[other] ?? 0) - (ones[one] ?? 0);
    if (difference !== 0) best = Math.min(best, Math.abs(difference));
    if (difference > 0) one += 1;
    else other += 1;
  }
  return best;
}

const year = 365.25 * 86_400_000;
const [earliest, latest] = [Date.UTC(2000), Date.UTC(2100)];

/** Doubles every few years. Only ratios matter, so the result does not depend on the current time. */
function recency(time: number): number {
  const known = Math.min(latest, Math.max(earliest, Number.isFinite(time) ? time : earliest));
  return 2 ** ((known - Date.UTC(2020)) / (tuning.doubling * year));
}

/** Sorts entries with all words first, then by score, then newest first. */
export function compareHits(one: HitPlace, other: HitPlace): number {
  const isFirst = Number(other.hasAllWords) - Number(one.hasAllWords);
  return isFirst || other.score - one.score || other.row - one.row;
}

/**
 * Returns the hits that rank above all unchecked ones. The index order is an upper bound, because masked text can only
 * lower a hit's rank. `last` is the last checked hit, or `undefined` if none are left.
 */
export function settledHits<Hit extends HitPlace>(
  checked: readonly Hit[],
  last: HitPlace | undefined,
): Hit[] {
  const sorted = checked.toSorted(compareHits);
  return last === undefined ? sorted : sorted.filter((hit) => compareHits(hit, last) <= 0);
}
