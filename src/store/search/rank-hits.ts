import type { QueryTerms } from "./query-terms.ts";
import type { ContextTerm, HitPlace, OwnScore, Ranker, ScoredText } from "./rank.ts";
import { compareHits, mostSources, neighborShares, noScore } from "./rank.ts";
import { codesOf, fold, wordsOf } from "./words.ts";

/** An entry as a store's index knows it. */
export interface IndexedText extends DatedRow, ScoredText {
  /** Orders the entries of a session. Adjacent entries usually have adjacent numbers. */
  readonly position: number;
}

/** The identity and time of an entry. */
interface DatedRow {
  /** Unique in the store. Newer entries have higher numbers. */
  readonly row: number;
  /** The uid of its session. */
  readonly uid: string;
  readonly time: number;
}

export interface ScoredEntry<Entry extends DatedRow> {
  readonly entry: Entry;
  readonly own: OwnScore;
}

/** A hit with the neighbors that add to its score, in the order of `neighborShares`. */
export interface RankedEntry<Entry extends DatedRow> extends HitPlace, ScoredEntry<Entry> {
  readonly around: readonly (ScoredEntry<Entry> | null)[];
  readonly inSession: readonly TermInSession<Entry>[];
}

/** A term that occurs in a session, with a few entries that contain it. */
export interface TermInSession<Entry extends DatedRow> {
  readonly term: number;
  /** Entries that contain the term. They are the same for all hits in a session. */
  readonly witnesses: readonly ScoredEntry<Entry>[];
  readonly nearest: ScoredEntry<Entry> | null;
  /** The number of entries from the hit to `nearest`. */
  readonly distance: number;
}

/** If the word is hidden in this many entries, it does not count for the session. */
const mostWitnesses = 4;

/** An entry and its neighbors in the session's order, from two before it to two after it. */
export type Surroundings<Entry> = readonly [Entry | null, Entry | null, Entry, Entry | null, Entry | null];

/** Scores entries by their own words, best first. The neighbors of `sources` are needed for the final order. */
export function scoreEntries<Entry extends IndexedText>(
  ranker: Ranker,
  found: readonly Entry[],
): { readonly scored: readonly ScoredEntry<Entry>[]; readonly sources: readonly Entry[] } {
  const scored = found
    .map((entry) => ({ entry, own: ranker.own(entry) }))
    .filter(({ own }) => own.matched.length > 0)
    .toSorted((one, other) =>
      compareHits({ ...one.own, row: one.entry.row }, { ...other.own, row: other.entry.row }),
    );
  return { scored, sources: scored.slice(0, mostSources).map(({ entry }) => entry) };
}

/**
 * Returns the final order. `surroundings` contains the neighbors of each source, with `null` for entries that are not
 * searched.
 */
export function rankEntries<Entry extends IndexedText>(
  ranker: Ranker,
  scored: readonly ScoredEntry<Entry>[],
  surroundings: readonly Surroundings<Entry>[],
): RankedEntry<Entry>[] {
  const known = new Map(scored.map((each) => [each.entry.row, each]));
  for (const entry of surroundings.flat())
    if (entry !== null && !known.has(entry.row)) known.set(entry.row, { entry, own: ranker.own(entry) });
  const around = neighborsByRow(surroundings);
  const terms = termsBySession(scored);
  return [...known.values()]
    .map(({ entry, own }) => {
      const rows = around.get(entry.row) ?? [];
      const near = neighborShares.map((_, at) => known.get(rows[at] ?? -1) ?? null);
      const inSession = (terms.get(entry.uid) ?? []).map((each) => withNearest(each, entry));
      return {
        row: entry.row,
        entry,
        own,
        around: near,
        inSession,
        ...placeOf(ranker, own, near, inSession, entry.time),
      };
    })
    .filter(({ own, around: near }) => isHit(ranker, own, near))
    .sort(compareHits);
}

function placeOf(
  ranker: Ranker,
  own: OwnScore,
  around: readonly ({ readonly own: OwnScore } | null)[],
  inSession: readonly ContextTerm[],
  time: number,
): { readonly hasAllWords: boolean; readonly score: number } {
  const scores = around.map((near) => near?.own ?? noScore);
  return { hasAllWords: own.hasAllWords, score: ranker.final(own, scores, inSession, time) };
}

function isHit(
  ranker: Ranker,
  own: OwnScore,
  around: readonly ({ readonly own: OwnScore } | null)[],
): boolean {
  return own.matched.length > 0 || around.some((near) => near !== null && ranker.isSource(near.own));
}

/** The entries of a session that contain a term. */
interface SessionTerm<Entry extends IndexedText> {
  readonly term: number;
  /** The entries with the best scores. */
  readonly witnesses: readonly ScoredEntry<Entry>[];
  /** The entries in the session's order. */
  readonly inOrder: readonly ScoredEntry<Entry>[];
}

function termsBySession<Entry extends IndexedText>(
  scored: readonly ScoredEntry<Entry>[],
): Map<string, readonly SessionTerm<Entry>[]> {
  const sessions = new Map<string, Map<number, ScoredEntry<Entry>[]>>();
  for (const each of scored) {
    const terms = sessions.get(each.entry.uid) ?? new Map<number, ScoredEntry<Entry>[]>();
    sessions.set(each.entry.uid, terms);
    for (const term of each.own.matched) {
      const holding = terms.get(term) ?? [];
      holding.push(each);
      terms.set(term, holding);
    }
  }
  const listed = (terms: ReadonlyMap<number, readonly ScoredEntry<Entry>[]>) =>
    [...terms]
      .sort(([one], [other]) => one - other)
      .map(([term, holding]) => ({
        term,
        witnesses: holding.slice(0, mostWitnesses),
        inOrder: holding.toSorted((one, other) => one.entry.position - other.entry.position),
      }));
  return new Map([...sessions].map(([uid, terms]) => [uid, listed(terms)]));
}

function withNearest<Entry extends IndexedText>(
  { term, witnesses, inOrder }: SessionTerm<Entry>,
  { position }: Entry,
): TermInSession<Entry> {
  let [low, high] = [0, inOrder.length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((inOrder[middle]?.entry.position ?? 0) < position) low = middle + 1;
    else high = middle;
  }
  const [before = null, after = null] = [inOrder[low - 1], inOrder[low]];
  const distanceTo = (each: ScoredEntry<Entry> | null) =>
    each === null ? Number.POSITIVE_INFINITY : Math.abs(each.entry.position - position);
  const nearest = distanceTo(after) <= distanceTo(before) ? after : before;
  return { term, witnesses, nearest, distance: distanceTo(nearest) };
}

/** Returns the rows of an entry's neighbors in the order of `neighborShares`. */
function neighborsByRow<Entry extends IndexedText>(
  surroundings: readonly Surroundings<Entry>[],
): Map<number, (number | undefined)[]> {
  const around = new Map<number, (number | undefined)[]>();
  for (const window of surroundings)
    for (const [at, entry] of window.entries()) {
      if (entry === null) continue;
      const rows = around.get(entry.row) ?? [];
      for (const [index, { distance }] of neighborShares.entries())
        rows[index] ??= window[at + distance]?.row;
      around.set(entry.row, rows);
    }
  return around;
}

/** The score of an entry's visible text. */
export function scoreText(
  ranker: Ranker,
  terms: QueryTerms,
  text: string,
  { role, length }: Pick<ScoredText, "role" | "length">,
): OwnScore {
  const found = wordsOf(text);
  const present = new Set([...found.words, ...found.parts]);
  const held = terms.terms.flatMap(({ word }, at) => (present.has(word) ? [at] : []));
  return ranker.own({ role, length, codes: codesOf(found), held });
}

/**
 * Returns where a hit belongs, based on the visible texts of the entry and its neighbors. Hidden words can only lower
 * its rank. `null` if the match is hidden.
 */
export function placeByShown<Entry extends DatedRow>(
  ranker: Ranker,
  { row, entry, own, around, inSession }: RankedEntry<Entry>,
  shownScore: (scored: ScoredEntry<Entry>) => OwnScore,
): HitPlace | null {
  const visible = (each: ScoredEntry<Entry>) => lower(each.own, shownScore(each));
  const shown = visible({ entry, own });
  const near = around.map((each) => (each === null || each.own.score === 0 ? null : { own: visible(each) }));
  if (!isHit(ranker, shown, near)) return null;
  const present = inSession.flatMap(({ term, witnesses, nearest, distance }) => {
    const isVisible = (each: ScoredEntry<Entry>) => visible(each).matched.includes(term);
    if (nearest !== null && isVisible(nearest)) return [{ term, distance }];
    return witnesses.some(isVisible) ? [{ term, distance: Number.POSITIVE_INFINITY }] : [];
  });
  return { row, ...placeOf(ranker, shown, near, present, entry.time) };
}

/** Returns the entries whose texts decide where a hit belongs. */
export function entriesFor<Entry extends DatedRow>({
  entry,
  around,
  inSession,
}: RankedEntry<Entry>): Entry[] {
  const near = around.filter((each) => each !== null && each.own.score > 0);
  const witnesses = inSession.flatMap((each) => [...each.witnesses, each.nearest]);
  return [entry, ...[...near, ...witnesses].flatMap((each) => (each === null ? [] : [each.entry]))];
}

function lower(one: OwnScore, other: OwnScore): OwnScore {
  return {
    score: Math.min(one.score, other.score),
    factor: Math.min(one.factor, other.factor),
    matched: one.matched.filter((term) => other.matched.includes(term)),
    hasAllWords: one.hasAllWords && other.hasAllWords,
  };
}

const unit = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]|[^\p{L}\p{N}\p{M}_]+/gu;

/** Whether a text contains the quoted phrases and none of the excluded words. */
export function fitsQuery(text: string, { phrases, excluded }: QueryTerms): boolean {
  if (phrases.length > 0) {
    const plain = plainText(text);
    if (!phrases.every((phrase) => plain.includes(plainText(phrase)))) return false;
  }
  if (excluded.length === 0) return true;
  const { words, parts } = wordsOf(text);
  return !excluded.some((word) => words.includes(word) || parts.includes(word));
}

/** Separates words, and characters of scripts without spaces, by one space. */
function plainText(text: string): string {
  const separated = fold(text).replace(unit, (found) => (/^[\p{L}]/u.test(found) ? ` ${found} ` : " "));
  return ` ${separated.replace(/ +/g, " ").trim()} `;
}
