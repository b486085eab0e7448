import { SkeinError } from "../../core/errors.ts";
import { cutText, thrownText } from "../../core/text.ts";
import { hidden, isMasked, mask } from "./mask.ts";

/** A rule of the user's, beside ours. */
export interface UserRule {
  readonly name: string;
  /** A regular expression as JavaScript has it with the flag `u`; it sees one line at a time. */
  readonly pattern: string;
  /** What stays to be seen of a match: its ends (default), as of any secret, or nothing. */
  readonly keep?: "ends" | "nothing";
}

export interface Redacted {
  readonly text: string;
  readonly count: number;
}

interface CompiledRule {
  readonly expression: RegExp;
  readonly keep: "ends" | "nothing";
}

/** Rules see so much of a line at once, so that what is quadratic in a pattern stays small. */
export const longestWindow = 4096;
const longestPattern = 500;

/** Refuses what could match nothing, or take for ever. */
export function compileUserRules(rules: readonly UserRule[]): readonly CompiledRule[] {
  return rules.map((rule) => {
    const problem = problemWith(rule);
    if (problem === null) return { expression: new RegExp(rule.pattern, "gu"), keep: rule.keep ?? "ends" };
    throw new SkeinError("invalid_arguments", {
      problem: `The redaction rule "${rule.name}" cannot be used: ${problem}`,
      advice: "Correct its pattern, or take the rule away; docs/redaction.md says what a pattern may hold",
    });
  });
}

function problemWith({ pattern }: UserRule): string | null {
  if (pattern.length > longestPattern) return `its pattern is longer than ${longestPattern} characters`;
  let expression: RegExp;
  try {
    expression = new RegExp(pattern, "u");
  } catch (error) {
    return thrownText(error);
  }
  if (["", "a", " ", "a b"].some((text) => expression.exec(text)?.[0] === ""))
    return "it matches the empty text";
  if (/\\[1-9]|\\k</.test(pattern)) return "it refers back to what it matched";
  if (hasNestedRepeats(pattern)) return "it repeats a group that repeats itself, which can take for ever";
  return null;
}

/** Whether a repeated group holds a repeat or alternatives: `(a+)+`, `(a|ab)*`. Safe patterns may be among them. */
function hasNestedRepeats(pattern: string): boolean {
  const bare = pattern.replace(/\\./gs, "_").replace(/\[[^\]]*\]/g, "_");
  const groups: { isLoose: boolean }[] = [];
  for (let at = 0; at < bare.length; at++) {
    const group = groups.at(-1);
    const char = bare[at] ?? "";
    if (char === "(") groups.push({ isLoose: false });
    else if (char === ")") {
      const closed = groups.pop();
      const outer = groups.at(-1);
      const isRepeated = /^(?:[*+]|\{\d+,?\d*\})/.test(bare.slice(at + 1, at + 12));
      if (isRepeated && closed?.isLoose) return true;
      if (outer !== undefined && (isRepeated || closed?.isLoose)) outer.isLoose = true;
    } else if (group !== undefined && /^(?:[*+|]|\{\d+,)/.test(bare.slice(at, at + 8))) group.isLoose = true;
  }
  return false;
}

/** A line end, or as much of a line as rules see at once. */
export function* windowsOf(text: string): Generator<string> {
  let from = 0;
  while (from < text.length) {
    const lineEnd = text.indexOf("\n", from);
    const to = lineEnd < 0 ? text.length : lineEnd + 1;
    while (from < to) {
      const window =
        to - from > longestWindow ? cutText(text.slice(from, to), longestWindow) : text.slice(from, to);
      yield window;
      from += window.length;
    }
  }
}

export function applyUserRules(rules: readonly CompiledRule[], text: string): Redacted {
  let count = 0;
  const parts: string[] = [];
  for (const window of windowsOf(text)) {
    let line = window;
    for (const { expression, keep } of rules)
      line = line.replace(expression, (match: string, ...rest: unknown[]) => {
        const at = rest.find((each) => typeof each === "number") ?? 0;
        if (isDone(line, match, at)) return match;
        count++;
        return keep === "ends" ? mask(match) : hidden;
      });
    parts.push(line);
  }
  return { text: parts.join(""), count };
}

/** Nothing to mask, or a mask already, or an end of one. */
function isDone(line: string, match: string, at: number): boolean {
  if (match === "" || isMasked(match) || hidden.includes(match)) return true;
  return (
    (match.length <= 6 && line[at + match.length] === "…") || (match.length <= 4 && line[at - 1] === "…")
  );
}
