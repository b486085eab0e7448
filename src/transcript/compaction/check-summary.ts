import { textTokens } from "../text-tokens.ts";
import { maxSummaryCharacters } from "./limits.ts";

export interface SummaryCheck {
  readonly isBlank: boolean;
  readonly isTooLong: boolean;
  readonly missing: readonly SectionId[];
  readonly empty: readonly SectionId[];
  /** `true` if the summary does not mention the user's latest request. */
  readonly lacksAsk: boolean;
}

interface CheckOptions {
  readonly summaryTokens: number;
  /** The user's latest request, or `null` if there is none. */
  readonly ask: string | null;
}

/** Text with fewer sections is not a summary. */
const minSections = 4;
const maxTerms = 40;
const minTerms = 3;
/** A summary mentions a request if it contains this share of its terms. */
const minTermShare = 0.2;

export function checkSummary(text: string, { summaryTokens, ask }: CheckOptions): SummaryCheck {
  const found = readSections(text);
  const bodyOf = (heading: string) => found.get(heading.toLowerCase());
  return {
    isBlank: text.trim() === "",
    isTooLong: text.length > maxSummaryCharacters || textTokens(text) > summaryTokens,
    missing: sections.filter(({ heading }) => bodyOf(heading) === undefined).map(({ id }) => id),
    empty: sections.filter(({ heading }) => bodyOf(heading)?.trim() === "").map(({ id }) => id),
    lacksAsk: ask !== null && !mentionsAsk(text, ask),
  };
}

/** Whether the summary can be used without another request to the summarizer. */
export function isComplete({ isBlank, isTooLong, missing, empty, lacksAsk }: SummaryCheck): boolean {
  return !isBlank && !isTooLong && missing.length + empty.length === 0 && !lacksAsk;
}

/** Whether enough sections are present to accept the text as a summary. */
export function hasMostSections({ missing, empty }: SummaryCheck): boolean {
  return sections.length - missing.length - empty.length >= minSections;
}

/** Returns feedback for a summarizer that must try again. */
export function describeProblems(check: SummaryCheck, mostCharacters: number): string[] {
  const named = (ids: readonly SectionId[]) =>
    sections
      .filter(({ id }) => ids.includes(id))
      .map(({ heading }) => `"${heading}"`)
      .join(", ");
  return [
    ...(check.isBlank ? ["It was empty."] : []),
    ...(check.isTooLong ? [`It was too long. The limit is ${mostCharacters} characters.`] : []),
    ...(check.missing.length > 0 ? [`These headings were missing: ${named(check.missing)}.`] : []),
    ...(check.empty.length > 0 ? [`These headings were empty: ${named(check.empty)}.`] : []),
    ...(check.lacksAsk ? ["It did not mention the user's last request."] : []),
  ];
}

/**
 * Whether enough of the request's terms occur in the text. A request with very few terms is assumed to be mentioned.
 */
function mentionsAsk(text: string, ask: string): boolean {
  const terms = extractTerms(ask);
  if (terms.length < minTerms) return true;
  const within = text.toLowerCase();
  return terms.filter((term) => within.includes(term)).length / terms.length >= minTermShare;
}

const wide = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}";
const wordOrRun = new RegExp(`[${wide}]{2,}|[\\p{L}\\p{N}_]{4,}`, "gu");
const isWide = new RegExp(`^[${wide}]`, "u");

/** Words of at least four letters or, in scripts without spaces, every pair of adjacent characters. */
function extractTerms(text: string): string[] {
  const terms = new Set<string>();
  for (const [word] of text.slice(0, 8000).toLowerCase().matchAll(wordOrRun)) {
    const parts = isWide.test(word) ? characterPairs(word) : [word];
    for (const part of parts) terms.add(part);
    if (terms.size >= maxTerms) break;
  }
  return [...terms].slice(0, maxTerms);
}

function characterPairs(run: string): string[] {
  const characters = [...run];
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`);
}

/**
 * The sections of a summary, with the summarizer's instruction for each. The headings are the same in every language so
 * that they can be found.
 */
const sectionRows = [
  ["goal", "Goal", "what the user ultimately wants: one line first, then details"],
  ["decisions", "Decisions", "what was decided and why, and what was tried and abandoned"],
  ["openWork", "Open work", "what is done, in progress, next, and blocked"],
  ["constraints", "Constraints", "rules, preferences and limits set by the user or the environment"],
  [
    "pendingAsks",
    "Pending asks",
    "what the user asked that has not been answered yet, latest first, in the user's own words",
  ],
  [
    "identifiers",
    "Exact identifiers",
    "names, numbers, IDs, addresses, commands, versions and error messages, copied exactly",
  ],
  ["files", "Files touched", "paths that were read or changed, and what was changed in them"],
] as const;

export type SectionId = (typeof sectionRows)[number][0];

export const sections = sectionRows.map(([id, heading, asks]) => ({ id, heading, asks }));

/** Returns the text under each heading, by lowercase heading. Text under repeated headings is joined. */
export function readSections(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let heading: string | null = null;
  for (const line of text.split("\n")) {
    const named = headingOf(line);
    if (named !== null) {
      heading = named;
      found.set(heading, found.get(heading) ?? "");
    } else if (heading !== null) found.set(heading, `${found.get(heading)}${line}\n`);
  }
  return found;
}

/**
 * Returns the lowercase heading on a line, without the decoration that models often add. Returns `null` for other
 * lines.
 */
export function headingOf(line: string): string | null {
  if (line.length > 200) return null;
  const [, name] = /^ {0,3}#{1,6}[ \t]+(.*)$/.exec(line) ?? [];
  return name === undefined ? null : name.replace(/^[\s*_\d.)]+|[\s*_:#]+$/g, "").toLowerCase();
}
