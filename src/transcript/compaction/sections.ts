/** What a summary consists of. The headings are in every language the same, so that they can be looked for. */

export type SectionId =
  | "goal"
  | "decisions"
  | "openWork"
  | "constraints"
  | "pendingAsks"
  | "identifiers"
  | "files";

export interface Section {
  readonly id: SectionId;
  readonly heading: string;
  /** What belongs in it, as the summariser is told. */
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
export function sectionsIn(text: string): ReadonlyMap<string, string> {
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
