import { SkeinError } from "../../core/errors.ts";
import { cutText, thrownText } from "../../core/text.ts";
import { fullMask, isMasked, mask } from "./secret-matches.ts";

export interface UserRule {
  readonly name: string;
  /** A JavaScript regular expression with the `u` flag, applied to one line at a time. */
  readonly pattern: string;
  /** The part of a match that stays visible: its ends (the default) or nothing. */
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

/**
 * Rules are applied to at most this many characters of a line at a time, which bounds the cost of quadratic patterns.
 */
export const maxWindowLength = 4096;
const maxPatternLength = 500;

/** Rejects patterns that can match the empty string or backtrack without bound. */
export function compileUserRules(rules: readonly UserRule[]): readonly CompiledRule[] {
  return rules.map((rule) => {
    const problem = findPatternProblem(rule);
    if (problem === null) return { expression: new RegExp(rule.pattern, "gu"), keep: rule.keep ?? "ends" };
    throw new SkeinError("invalid_arguments", {
      problem: `The redaction rule "${rule.name}" cannot be used: ${problem}`,
      advice: "Correct its pattern or remove the rule. docs/redaction.md lists what a pattern can contain",
    });
  });
}

function findPatternProblem({ pattern }: UserRule): string | null {
  if (pattern.length > maxPatternLength) return `its pattern is longer than ${maxPatternLength} characters`;
  let expression: RegExp;
  try {
    expression = new RegExp(pattern, "u");
  } catch (error) {
    return thrownText(error);
  }
  if (["", "a", " ", "a b"].some((text) => expression.exec(text)?.[0] === ""))
    return "it matches the empty string";
  if (/\\[1-9]|\\k</.test(pattern)) return "it uses a backreference";
  if (hasNestedRepeats(pattern))
    return "it repeats a group that itself contains a repetition, which can take forever";
  return null;
}

/**
 * Whether a repeated group contains a repetition or alternatives: `(a+)+`, `(a|ab)*`. Also rejects some safe patterns.
 */
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

/** Splits text at line ends, and longer lines into windows. */
function* splitWindows(text: string): Generator<string> {
  let from = 0;
  while (from < text.length) {
    const lineEnd = text.indexOf("\n", from);
    const to = lineEnd < 0 ? text.length : lineEnd + 1;
    while (from < to) {
      const window =
        to - from > maxWindowLength ? cutText(text.slice(from, to), maxWindowLength) : text.slice(from, to);
      yield window;
      from += window.length;
    }
  }
}

export function applyUserRules(rules: readonly CompiledRule[], text: string): Redacted {
  let count = 0;
  const parts: string[] = [];
  for (const window of splitWindows(text)) {
    let line = window;
    for (const { expression, keep } of rules)
      line = line.replace(expression, (match: string, ...rest: unknown[]) => {
        const at = rest.find((each) => typeof each === "number") ?? 0;
        if (isAlreadyMasked(line, match, at)) return match;
        count++;
        return keep === "ends" ? mask(match) : fullMask;
      });
    parts.push(line);
  }
  return { text: parts.join(""), count };
}

/** Whether the match is empty, is a mask, or is one end of a mask. */
function isAlreadyMasked(line: string, match: string, at: number): boolean {
  if (match === "" || isMasked(match) || fullMask.includes(match)) return true;
  return (
    (match.length <= 6 && line[at + match.length] === "…") || (match.length <= 4 && line[at - 1] === "…")
  );
}
