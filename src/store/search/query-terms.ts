import { readTime } from "../../core/clock.ts";
import type { AnswerMark } from "./answer-marks.ts";
import { askedMarks } from "./answer-marks.ts";
import { relatedTo } from "./related-words.ts";
import { stopWords } from "./word-forms.ts";
import type { PlacedWord } from "./words.ts";
import { fold, placedWords } from "./words.ts";

/** A word of a query. Parts of an identifier count less than the whole. */
export interface QueryTerm {
  readonly word: string;
  readonly weight: number;
  /** Words with related meanings. */
  readonly related: readonly string[];
}

export interface QueryFilters {
  readonly role?: string;
  readonly since?: number;
  readonly until?: number;
}

export interface QueryTerms {
  /** An entry with any of these words is a hit. */
  readonly terms: readonly QueryTerm[];
  /** Sequences of words. Entries that contain every sequence come first. */
  readonly all: readonly (readonly string[])[];
  /** Quoted texts. A hit contains each of them. In a sentence, quoted words are treated like other words. */
  readonly phrases: readonly string[];
  /** Words after a minus. No hit contains them. */
  readonly excluded: readonly string[];
  /** From `role:`, `since:` and `until:` in the query. */
  readonly filters: QueryFilters;
  /** Entries with these marks are ranked higher. */
  readonly asked: readonly AnswerMark[];
  /**
   * Whether the query is a sentence. If it is, messages next to a good hit are also hits, because they might contain
   * the answer.
   */
  readonly isSentence: boolean;
}

/** Additional words in a long query are ignored. */
export const mostTerms = 50;
const partWeight = 0.5;
const sentenceWords = 4;

const quoted = /["“”]([^"“”]+)["“”]/g;
/** Needs a letter after the minus, so that `- item`, `--flag` and `-1` are not exclusions. */
const minus = /(?<=^|\s)-(\p{L}[\p{L}\p{N}\p{M}_]+)/gu;

/** A filter has no space after its colon. Anything that is not a known role or a time is searched for as text. */
const filter = /(?<=^|\s)(role|since|until):(\S+)/giu;
const roles = ["user", "assistant", "toolResult", "bashExecution", "custom", "system", "summary"];
const dayMs = 86_400_000;

export function queryTerms(given: string): QueryTerms {
  const filters: { role?: string; since?: number; until?: number } = {};
  const query = given.replace(filter, (whole: string, name: string, value: string) => {
    const read = readFilter(name.toLowerCase(), value);
    Object.assign(filters, read);
    return read === null ? whole : " ";
  });
  const phrases = [...query.matchAll(quoted)]
    .map(([, text = ""]) => text)
    .filter((text) => firstWord(text) !== null);
  const unquoted = query.replace(quoted, " ");
  const excluded = [...unquoted.matchAll(minus)].flatMap(([, word = ""]) => firstWord(word)?.word ?? []);
  const text = `${unquoted.replace(minus, " ")} ${phrases.join(" ")}`.normalize("NFKC");
  const placed = [...placedWords(text)];
  const meant = placed.filter(({ start, end }) => !stopWords.has(fold(text.slice(start, end))));
  const counted = meant.some(({ isPart }) => !isPart) ? meant : placed;
  const words = counted.filter(({ isPart }) => !isPart);
  const parts = counted.filter(({ isPart, start, end }) => isPart && !isSingleCharacter(text, start, end));
  const unquotedWords = [...placedWords(unquoted)].filter(({ isPart }) => !isPart);
  const isSentence = unquotedWords.length >= sentenceWords;
  return {
    terms: distinctTerms(words, parts),
    all: sequencesOf(words).slice(0, mostTerms),
    phrases: isSentence ? [] : phrases,
    excluded,
    filters,
    asked: askedMarks(query),
    isSentence,
  };
}

function readFilter(name: string, value: string): QueryFilters | null {
  if (name === "role") {
    const role = roles.find((each) => each.toLowerCase() === value.toLowerCase());
    return role === undefined ? null : { role };
  }
  const time = readTime(value);
  if (time === null) return null;
  // A date includes the whole day.
  const end = value.length === 10 ? time + dayMs - 1 : time;
  return name === "since" ? { since: time } : { until: end };
}

/** Applies the filters in the text of a query. The query's own role takes precedence. */
export function withFilters<Query extends QueryFilters>(query: Query, { filters }: QueryTerms): Query {
  const { role = filters.role, since = -Infinity, until = Infinity } = query;
  const times = {
    since: Math.max(since, filters.since ?? -Infinity),
    until: Math.min(until, filters.until ?? Infinity),
  };
  return {
    ...query,
    ...(role === undefined ? {} : { role }),
    ...(times.since === -Infinity ? {} : { since: times.since }),
    ...(times.until === Infinity ? {} : { until: times.until }),
  };
}

function firstWord(text: string): PlacedWord | null {
  for (const word of placedWords(text.normalize("NFKC"))) return word;
  return null;
}

/** A single character of a longer Chinese word would match far too much. */
function isSingleCharacter(text: string, start: number, end: number): boolean {
  return end - start <= 2 && /^\P{ASCII}/u.test(text.slice(start, end));
}

function distinctTerms(words: readonly PlacedWord[], parts: readonly PlacedWord[]): QueryTerm[] {
  const terms = new Map<string, QueryTerm>();
  for (const { word } of words) terms.set(word, { word, weight: 1, related: relatedTo(word) });
  for (const { word } of parts)
    if (!terms.has(word)) terms.set(word, { word, weight: partWeight, related: [] });
  return [...terms.values()].slice(0, mostTerms);
}

/** Pairs of characters that overlap form one sequence. Every other word is its own sequence. */
function sequencesOf(words: readonly PlacedWord[]): string[][] {
  const sequences: string[][] = [];
  let last: PlacedWord | null = null;
  for (const each of words) {
    if (last !== null && each.start < last.end) sequences.at(-1)?.push(each.word);
    else sequences.push([each.word]);
    last = each;
  }
  return sequences;
}
