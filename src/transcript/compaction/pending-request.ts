import type { ContextMessage } from "../../core/context.ts";
import type { Content } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import { escapeTags } from "../model-message.ts";
import { headingOf } from "./check-summary.ts";
import { truncateText, truncateToTokens } from "./chunks.ts";
import { contentText, noteFrom, senderOf } from "./conversation-text.ts";
import type { CutPlan } from "./plan-cut.ts";

/**
 * A cut inside a turn removes the request that the turn is working on. To preserve it without relying on the
 * summarizer, the request is quoted in the summary. The quote is kept if the same turn is cut again.
 */

const heading = "The request under way";
const maxRequestCharacters = 4000;
/** A quoted request from a hook or the system. */
const isNote = /^\[(?:Note from |Message of the system\])/;

interface Ask {
  readonly text: string;
  /** The quoted text, with its source unless the user wrote it. */
  readonly quote: string;
}

/** The latest requests in a range. */
export interface Asks {
  /** From a person or another session. */
  readonly said: Ask | null;
  /** From a hook or the system. Used only if `said` is `null`. */
  readonly noted: Ask | null;
}

export const noAsks: Asks = { said: null, noted: null };

/** Fills in missing requests from earlier messages. */
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
 * Returns the quoted request for the turn that the plan splits. It is the latest request in the range or, if there is
 * none, the one in the previous summary. Returns `null` if no turn is split or the request is unknown.
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

/** Returns the text, or a description of content that is not text. */
function askText(content: Content): string {
  return textOf(content).trim() || contentText(content).trim();
}

/** Appends the request to a summary, replacing an earlier one. */
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

/** Removes what `appendRequest` added. */
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
