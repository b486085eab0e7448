import type { ContextMessage } from "../../core/context.ts";
import { textOf } from "../../core/messages.ts";
import { escapeFences } from "../fences.ts";
import type { CutPlan } from "./plan-cut.ts";
import { headingOf } from "./sections.ts";
import { shorten, shortenToTokens } from "./shorten.ts";

/**
 * A cut inside a turn leaves the request behind that the turn works on. No summariser is trusted with it: it stands in
 * the summary in the user's own words, and is handed on as long as the same turn is cut again.
 */

const heading = "The request under way";
const mostCharacters = 4000;

/** What the turn works on that a plan cuts in two; `null`: the plan cuts none, or nobody knows. */
export function requestUnderWay(
  plan: Pick<CutPlan, "splitTurn" | "toSummarise" | "previousSummary">,
): string | null {
  if (!plan.splitTurn) return null;
  return latestAsk(plan.toSummarise) ?? quotedRequest(plan.previousSummary ?? "");
}

/** What was asked last, by the user or on the user's behalf. */
export function latestAsk(messages: readonly ContextMessage[]): string | null {
  for (const message of messages.toReversed()) {
    if (message.role !== "user" && message.role !== "custom") continue;
    const text = textOf(message.content).trim();
    if (text !== "") return text;
  }
  return null;
}

/** The summary with the request behind it, and nowhere else. */
export function withRequest(summary: string, request: string | null, mostTokens: number): string {
  const rest = withoutRequest(summary);
  const text = request === null ? "" : shortenToTokens(shorten(request, mostCharacters), mostTokens);
  if (text === "") return rest;
  const quoted = escapeFences(text.toWellFormed())
    .split(/\r\n|[\n\r\u2028\u2029]/)
    .map((line) => `> ${line}`);
  return `${rest}\n\n## ${heading}\n${quoted.join("\n")}`;
}

/** The summary without what `withRequest` put there. */
export function withoutRequest(summary: string): string {
  let isInside = false;
  const kept = summary.split("\n").filter((line) => {
    const named = headingOf(line);
    if (named !== null) isInside = named === heading.toLowerCase();
    return !isInside;
  });
  return kept.join("\n").trim();
}

function quotedRequest(summary: string): string | null {
  const lines = summary.split("\n");
  const at = lines.findLastIndex((line) => headingOf(line) === heading.toLowerCase());
  if (at === -1) return null;
  const behind = lines.slice(at + 1);
  const end = behind.findIndex((line) => !line.startsWith(">"));
  const quoted = end === -1 ? behind : behind.slice(0, end);
  return (
    quoted
      .map((line) => line.replace(/^> ?/, ""))
      .join("\n")
      .trim() || null
  );
}
