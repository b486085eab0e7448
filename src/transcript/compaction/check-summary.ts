import { textTokens } from "../text-tokens.ts";
import { maxSummaryCharacters } from "./limits.ts";

/** What is wrong with a summary. */
export interface SummaryCheck {
  readonly isBlank: boolean;
  readonly isTooLong: boolean;
  readonly missing: readonly SectionId[];
  readonly empty: readonly SectionId[];
  /** The latest ask of the user does not show in it. */
  readonly lacksAsk: boolean;
}

interface CheckOptions {
  readonly summaryTokens: number;
  /** What the user asked last; `null`: nothing that could be looked for. */
  readonly ask: string | null;
}

/** With fewer sections than this a text is no summary, whatever it says. */
const minSections = 4;
const maxTerms = 40;
const minTerms = 3;
/** The share of an ask's terms that shows in a summary that mentions it. */
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

/** Nothing to ask again for. */
export function isComplete({ isBlank, isTooLong, missing, empty, lacksAsk }: SummaryCheck): boolean {
  return !isBlank && !isTooLong && missing.length + empty.length === 0 && !lacksAsk;
}

/** Good enough to stand in for what was said: most sections are there. */
export function hasMostSections({ missing, empty }: SummaryCheck): boolean {
  return sections.length - missing.length - empty.length >= minSections;
}

/** What to say to a summarizer that is asked again. */
export function describeProblems(check: SummaryCheck, mostCharacters: number): string[] {
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
function mentionsAsk(text: string, ask: string): boolean {
  const terms = extractTerms(ask);
  if (terms.length < minTerms) return true;
  const within = text.toLowerCase();
  return terms.filter((term) => within.includes(term)).length / terms.length >= minTermShare;
}

const wide = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}";
const wordOrRun = new RegExp(`[${wide}]{2,}|[\\p{L}\\p{N}_]{4,}`, "gu");
const isWide = new RegExp(`^[${wide}]`, "u");

/** Words of four letters and more; of scripts without blanks, each two characters that follow one another. */
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

/** What a summary consists of. The headings are in every language the same, so that they can be looked for. */

export type SectionId =
  | "goal"
  | "decisions"
  | "openWork"
  | "constraints"
  | "pendingAsks"
  | "identifiers"
  | "files";

interface Section {
  readonly id: SectionId;
  readonly heading: string;
  /** What belongs in it, as the summarizer is told. */
  readonly asks: string;
}

export const sections: readonly Section[] = [
  {
    id: "goal",
    heading: "Goal",
    asks: "what the user wants to have in the end; one line first, then detail",
  },
  { id: "decisions", heading: "Decisions", asks: "what was decided, and why; what was tried and given up" },
  {
    id: "openWork",
    heading: "Open work",
    asks: "what is done, what is under way, what comes next, what is stuck",
  },
  {
    id: "constraints",
    heading: "Constraints",
    asks: "rules, preferences and limits that the user or the surroundings set",
  },
  {
    id: "pendingAsks",
    heading: "Pending asks",
    asks: "what the user asked and has no answer to yet, the latest ask first, in the user's words",
  },
  {
    id: "identifiers",
    heading: "Exact identifiers",
    asks: "names, numbers, ids, addresses, commands, versions and error messages, to the letter",
  },
  {
    id: "files",
    heading: "Files touched",
    asks: "paths that were read or changed, and what was done to them",
  },
];

/** What stands under each heading of a text, by the heading in lower case; of a repeated one, all of it. */
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

/** The heading that a line is, in lower case, without what models like to put around it. */
export function headingOf(line: string): string | null {
  if (line.length > 200) return null;
  const [, name] = /^ {0,3}#{1,6}[ \t]+(.*)$/.exec(line) ?? [];
  return name === undefined ? null : name.replace(/^[\s*_\d.)]+|[\s*_:#]+$/g, "").toLowerCase();
}
