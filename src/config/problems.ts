import { SkeinError } from "../core/errors.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import type { Origin } from "./tree.ts";
import { originText, pathText } from "./tree.ts";

export interface ConfigProblem {
  readonly at: Origin;
  /** The keys that lead to the invalid value. Empty if the problem concerns the whole file. */
  readonly path: readonly string[];
  /** Describes the invalid value. */
  readonly found: string;
  readonly expected: string;
  /** The valid value that was probably intended. */
  readonly suggestion: string | null;
}

/** The longest one-line message, in characters. */
const longestText = 250;

/** Formats the problem as one line. If the list of allowed values is too long, only the suggestion is shown. */
function shortText(problem: ConfigProblem): string {
  const whole = problemText(problem);
  const { suggestion } = problem;
  return whole.length <= longestText || suggestion === null
    ? whole
    : problemText({ ...problem, expected: suggestion, suggestion: null });
}

/** Formats the problem as one sentence with the location, what was found and what was expected. */
export function problemText({ at, path, found, expected, suggestion }: ConfigProblem): string {
  const where = path.length === 0 ? originText(at) : `${originText(at)}: ${pathText(path)}`;
  const guess = suggestion === null ? "" : ` (did you mean ${suggestion}?)`;
  return escapeToLine(`${where}: found ${found}, expected ${expected}${guess}`);
}

/** Orders problems by position in the file or object. Problems in the environment come last. */
export function compareProblems({ at: a }: ConfigProblem, { at: b }: ConfigProblem): number {
  if (a.from === "file" && b.from === "file") return a.line - b.line || a.column - b.column;
  if (a.from === "environment" && b.from === "environment") return a.variable < b.variable ? -1 : 1;
  return Number(a.from === "environment") - Number(b.from === "environment");
}

const mostPlaces = 5;

/** An error with all problems of a configuration, each as one sentence. */
export type ConfigError = SkeinError<"invalid_config"> & { readonly problems: readonly string[] };

/**
 * Combines all problems into one error. The message describes the first problem and gives the number of the others. It
 * also lists the locations of the problems, up to a limit.
 */
export function configError(problems: readonly [ConfigProblem, ...ConfigProblem[]]): ConfigError {
  const [first, ...others] = problems;
  const places = [...new Set(problems.map(({ at }) => originText(at)))];
  const unnamed = places.length - mostPlaces;
  const error = new SkeinError("invalid_config", {
    problem: shortText(first),
    others: others.length === 0 ? "" : `, and ${others.length} more`,
    places: places.slice(0, mostPlaces).join(", ") + (unnamed > 0 ? ` and ${unnamed} more` : ""),
  });
  return Object.assign(error, { problems: problems.map(problemText) });
}

const longestShown = 60;

/** Shortens a value for use in a message. If it is a URL, removes the password. */
export function shownValue(value: unknown): string {
  const text = JSON.stringify(withoutPassword(value)) ?? String(value);
  return text.length > longestShown ? `${cutText(text, longestShown)}…` : text;
}

/** Returns `scheme://user:password@host?password=…` without the passwords, which can contain any character but a space. */
export function withoutPassword<T>(value: T): T | string {
  if (typeof value !== "string") return value;
  const masked = value.replace(/(:\/\/[^/:@\s]*):\S+@/g, "$1:***@");
  return masked.replace(/([?&](?:ssl)?password=)[^&\s]*/gi, "$1***");
}

/** Returns the known word closest to a mistyped one, or `null` if none is close enough. */
export function nearest(text: string, known: readonly string[]): string | null {
  const word = text.toLowerCase();
  const near = known
    .map((each) => ({ each, steps: distance(word, each.toLowerCase()) }))
    .filter(({ each, steps }) => steps <= Math.min(2, Math.floor(each.length / 3)))
    .toSorted((a, b) => a.steps - b.steps);
  return near[0]?.each ?? null;
}

/** Returns the edit distance: the number of letters inserted, deleted, replaced or swapped with a neighbor. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Number.POSITIVE_INFINITY;
  const rows = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let row = 1; row <= a.length; row++) {
    rows[row] = [row];
    for (let column = 1; column <= b.length; column++) {
      const [left, above] = [a[row - 1], b[column - 1]];
      const swapped = row > 1 && column > 1 && left === b[column - 2] && above === a[row - 2];
      (rows[row] as number[]).push(
        Math.min(
          at(row - 1, column) + 1,
          at(row, column - 1) + 1,
          at(row - 1, column - 1) + (left === above ? 0 : 1),
          swapped ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
  }
  return at(a.length, b.length);
}
