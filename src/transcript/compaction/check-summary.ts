import { textTokens } from "../text-tokens.ts";
import { mostSummaryCharacters } from "./limits.ts";
import type { SectionId } from "./sections.ts";
import { sections, sectionsIn } from "./sections.ts";

/** What is wrong with a summary. */
export interface SummaryCheck {
  readonly isBlank: boolean;
  readonly isTooLong: boolean;
  readonly missing: readonly SectionId[];
  readonly empty: readonly SectionId[];
  /** The latest ask of the user does not show in it. */
  readonly lacksAsk: boolean;
}

export interface CheckOptions {
  readonly summaryTokens: number;
  /** What the user asked last; `null`: nothing that could be looked for. */
  readonly ask: string | null;
}

/** With fewer sections than this a text is no summary, whatever it says. */
const leastSections = 4;
const mostTerms = 40;
const leastTerms = 3;
/** The share of an ask's terms that shows in a summary that mentions it. */
const leastShare = 0.2;

export function checkSummary(text: string, { summaryTokens, ask }: CheckOptions): SummaryCheck {
  const found = sectionsIn(text);
  const bodyOf = (heading: string) => found.get(heading.toLowerCase());
  return {
    isBlank: text.trim() === "",
    isTooLong: text.length > mostSummaryCharacters || textTokens(text) > summaryTokens,
    missing: sections.filter(({ heading }) => bodyOf(heading) === undefined).map(({ id }) => id),
    empty: sections.filter(({ heading }) => bodyOf(heading)?.trim() === "").map(({ id }) => id),
    lacksAsk: ask !== null && !mentions(text, ask),
  };
}

/** Nothing to ask again for. */
export function isFine({ isBlank, isTooLong, missing, empty, lacksAsk }: SummaryCheck): boolean {
  return !isBlank && !isTooLong && missing.length + empty.length === 0 && !lacksAsk;
}

/** Good enough to stand in for what was said: most sections are there. */
export function hasMostSections({ missing, empty }: SummaryCheck): boolean {
  return sections.length - missing.length - empty.length >= leastSections;
}

/** What to say to a summariser that is asked again. */
export function problemsOf(check: SummaryCheck, mostCharacters: number): string[] {
  const named = (ids: readonly SectionId[]) =>
    sections
      .filter(({ id }) => ids.includes(id))
      .map(({ heading }) => `"${heading}"`)
      .join(", ");
  return [
    ...(check.isBlank ? ["It was empty."] : []),
    ...(check.isTooLong ? [`It was too long: ${mostCharacters} characters are the most.`] : []),
    ...(check.missing.length > 0 ? [`These headings were missing: ${named(check.missing)}.`] : []),
    ...(check.empty.length > 0 ? [`Nothing stood under these headings: ${named(check.empty)}.`] : []),
    ...(check.lacksAsk ? ["It did not say what the user asked last."] : []),
  ];
}

/** Whether enough of an ask's own words show in a text; an ask of hardly any words counts as mentioned. */
function mentions(text: string, ask: string): boolean {
  const terms = termsOf(ask);
  if (terms.length < leastTerms) return true;
  const within = text.toLowerCase();
  return terms.filter((term) => within.includes(term)).length / terms.length >= leastShare;
}

const wide = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}";
const wordOrRun = new RegExp(`[${wide}]{2,}|[\\p{L}\\p{N}_]{4,}`, "gu");
const isWide = new RegExp(`^[${wide}]`, "u");

/** Words of four letters and more; of scripts without blanks, each two characters that follow one another. */
function termsOf(text: string): string[] {
  const terms = new Set<string>();
  for (const [word] of text.slice(0, 8000).toLowerCase().matchAll(wordOrRun)) {
    const parts = isWide.test(word) ? pairsOf(word) : [word];
    for (const part of parts) terms.add(part);
    if (terms.size >= mostTerms) break;
  }
  return [...terms].slice(0, mostTerms);
}

function pairsOf(run: string): string[] {
  const characters = [...run];
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`);
}
