import type { ContextMessage } from "../../core/context.ts";
import type { Content } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import { escapeTags } from "../visible-message.ts";
import { headingOf } from "./check-summary.ts";
import { truncateText, truncateToTokens } from "./chunks.ts";
import { contentText, noteFrom, senderOf } from "./conversation-text.ts";
import type { CutPlan } from "./plan-cut.ts";

/**
 * A cut inside a turn leaves the request behind that the turn works on. No summarizer is trusted with it: it stands in
 * the summary in the words of whoever asked, and is handed on as long as the same turn is cut again.
 */

const heading = "The request under way";
const maxRequestCharacters = 4000;
/** A request that nobody said, as it is quoted. */
const isNote = /^\[(?:Note from |Message of the system\])/;

/** Something that was asked for. */
interface Ask {
  readonly text: string;
  /** The same as it is quoted: what the user did not say is told apart. */
  readonly quote: string;
}

/** What a range was asked last. */
export interface Asks {
  /** By a person, or by another session. */
  readonly said: Ask | null;
  /** By a hook or by the system: it counts only where nobody said anything. */
  readonly noted: Ask | null;
}

export const noAsks: Asks = { said: null, noted: null };

/** What was asked last, now that the messages before are known too. */
export function addEarlierAsks(later: Asks, messages: readonly ContextMessage[]): Asks {
  if (later.said !== null) return later;
  let { noted } = later;
  for (const message of messages.toReversed()) {
    if (message.role !== "user" && message.role !== "custom") continue;
    const text = askText(message.content);
    if (text === "") continue;
    const who = message.role === "user" ? senderOf(message) : noteFrom(message.customType);
    const ask = { text, quote: who === "User" ? text : `[${who}]: ${text}` };
    if (message.role === "user" && message.provenance?.kind !== "internal_system")
      return { said: ask, noted };
    noted ??= ask;
  }
  return { said: null, noted };
}

/**
 * What the turn works on that a plan cuts in two, as it is quoted: what was said last in the range, else what the
 * previous summary hands on. `null`: the plan cuts none, or nobody knows.
 */
export function findPendingRequest(
  plan: Pick<CutPlan, "splitTurn" | "previousSummary">,
  { said, noted }: Asks,
): string | null {
  if (!plan.splitTurn) return null;
  const handedOn = readQuotedRequest(plan.previousSummary ?? "");
  if (said !== null) return said.quote;
  if (noted === null) return handedOn;
  return handedOn === null || isNote.test(handedOn) ? noted.quote : handedOn;
}

/** To the letter; what is no text, by what it is. */
function askText(content: Content): string {
  return textOf(content).trim() || contentText(content).trim();
}

/** The summary with the request behind it, and nowhere else. */
export function appendRequest(summary: string, request: string | null, mostTokens: number): string {
  const rest = removeRequest(summary);
  const text =
    request === null ? "" : truncateToTokens(truncateText(request, maxRequestCharacters), mostTokens);
  if (text === "") return rest;
  const quoted = escapeTags(text.toWellFormed())
    .split(/\r\n|[\n\r\u2028\u2029]/)
    .map((line) => `> ${line}`);
  return `${rest}\n\n## ${heading}\n${quoted.join("\n")}`;
}

/** The summary without what `withRequest` put there. */
export function removeRequest(summary: string): string {
  let isInside = false;
  const kept = summary.split("\n").filter((line) => {
    const named = headingOf(line);
    if (named !== null) isInside = named === heading.toLowerCase();
    return !isInside;
  });
  return kept.join("\n").trim();
}

function readQuotedRequest(summary: string): string | null {
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
