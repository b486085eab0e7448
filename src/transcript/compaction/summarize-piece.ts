import { SkeinError } from "../../core/errors.ts";
import { escapeToLine, thrownText } from "../../core/text.ts";
import { textTokens } from "../text-tokens.ts";
import { escapeTags } from "../visible-message.ts";
import type { SectionId, SummaryCheck } from "./check-summary.ts";
import { checkSummary, hasMostSections, isFine, problemsOf } from "./check-summary.ts";
import type { CompactionMode } from "./chunks.ts";
import { truncateText, truncateToTokens } from "./chunks.ts";
import { compactionLimits, mostSummaryCharacters } from "./limits.ts";
import { withoutRequest } from "./pending-request.ts";
import type { PromptParts } from "./prompts.ts";
import { summariserSystem, summaryPrompt } from "./prompts.ts";

/** The notes on one piece of a range: asked for, checked, and in safeguard mode asked for once more. */

interface PieceOptions {
  readonly summarise: Summarise;
  readonly mode: CompactionMode;
  readonly contextWindow: number;
  readonly signal?: AbortSignal;
  /** What the notes have to mention; `null`: nothing in particular. */
  readonly ask: string | null;
  /** Told of each request: what it came to, and what the answer did. */
  readonly spent: (input: number, output: number) => void;
}

type PieceParts = Omit<PromptParts, "mostCharacters" | "problems">;

export interface PieceSummary {
  readonly text: string;
  readonly retried: boolean;
  /** Sections that are not there, or empty. */
  readonly missing: readonly SectionId[];
}

export async function summarisePiece(
  parts: PieceParts,
  options: PieceOptions,
): Promise<PieceSummary | SummaryFailure> {
  const { summaryTokens } = compactionLimits(options.contextWindow);
  const check = (text: string) => checkSummary(text, { summaryTokens, ask: options.ask });
  const first = await askFor(parts, [], options);
  if ("failure" in first) return first;
  const found = check(first.text);
  if (options.mode === "default") return accepted(first.text, found, { retried: false, anyShape: true });
  const before = accepted(first.text, found, { retried: false, anyShape: false });
  if (isFine(found)) return before;
  const second = await askFor(parts, problemsOf(found, mostCharacters(summaryTokens)), options);
  const again =
    "failure" in second
      ? second
      : accepted(second.text, check(second.text), { retried: true, anyShape: false });
  if ("failure" in before || ("failure" in again && again.failure === "aborted")) return again;
  const isWorse = "failure" in again || again.missing.length > before.missing.length;
  return isWorse ? { ...before, retried: true } : again;
}

async function askFor(
  parts: PieceParts,
  problems: readonly string[],
  { summarise, contextWindow, signal, spent }: PieceOptions,
): Promise<{ readonly text: string } | SummaryFailure> {
  const { summaryTokens } = compactionLimits(contextWindow);
  const summary = parts.summary === null ? null : truncateToTokens(parts.summary, summaryTokens);
  const request: SummaryRequest = {
    system: summariserSystem,
    prompt: summaryPrompt({ ...parts, summary, problems, mostCharacters: mostCharacters(summaryTokens) }),
    maxTokens: summaryTokens,
    ...(signal === undefined ? {} : { signal }),
  };
  const answer = await askSummariser(summarise, request);
  const input = textTokens(request.system) + textTokens(request.prompt);
  spent(input, "text" in answer ? textTokens(answer.text) : 0);
  return "text" in answer ? { text: withoutRequest(escapeTags(answer.text)) } : answer;
}

/** What the summariser is told; in scripts with a token a character the check by tokens comes first. */
function mostCharacters(summaryTokens: number): number {
  return Math.min(mostSummaryCharacters, summaryTokens * 3);
}

/** Whether a text will do; with `anyShape` its sections are not looked at. */
function accepted(
  text: string,
  check: SummaryCheck,
  { retried, anyShape }: { readonly retried: boolean; readonly anyShape: boolean },
): PieceSummary | SummaryFailure {
  const missing = [...check.missing, ...check.empty];
  if (check.isBlank) return { failure: "empty", note: "the summariser answered nothing" };
  if (check.isTooLong)
    return { failure: "too_long", note: `the summary is too long: ${text.length} characters` };
  if (!anyShape && !hasMostSections(check))
    return { failure: "poor", note: `the summary lacks ${missing.length} of its sections` };
  return { text, retried, missing };
}

/** What is asked of a summariser. */
export interface SummaryRequest {
  readonly system: string;
  readonly prompt: string;
  /** What the answer may come to. */
  readonly maxTokens: number;
  readonly signal?: AbortSignal;
}

/**
 * What makes the summaries: any model, or anything else. It may fail, answer nothing or never: history is not touched
 * then. Where it throws a `SkeinError` with the code `context_overflow`, it is asked again with smaller prompts.
 */
export type Summarise = (request: SummaryRequest) => Promise<string>;

/** Why there is no summary. */
export interface SummaryFailure {
  /**
   * `failed`: it threw. `overflow`: the prompt was too long for it. `empty`: it answered nothing. `too_long`, `poor`: what it answered is none. `timed_out`,
   * `aborted`: the signal came first. `nothing_said`: there is nothing in the range that a model sees.
   */
  readonly failure:
    | "failed"
    | "overflow"
    | "empty"
    | "too_long"
    | "poor"
    | "timed_out"
    | "aborted"
    | "nothing_said";
  readonly note: string;
}

const mostNoteCharacters = 300;

/** Asks once. Never throws, and does not wait beyond the signal, whatever the summariser does. */
async function askSummariser(
  summarise: Summarise,
  request: SummaryRequest,
): Promise<{ readonly text: string } | SummaryFailure> {
  const { signal } = request;
  if (signal?.aborted === true) return stopped(signal);
  const { promise: untilSignal, resolve } = Promise.withResolvers<SummaryFailure>();
  const onAbort = () => resolve(stopped(signal));
  signal?.addEventListener("abort", onAbort, { once: true });
  const asked = async () => textAnswer(await summarise(request));
  const answered = asked().catch((error: unknown) =>
    signal?.aborted === true ? stopped(signal) : failed(error),
  );
  try {
    return await Promise.race([answered, untilSignal]);
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

function textAnswer(answer: unknown): { readonly text: string } {
  return { text: typeof answer === "string" ? answer.toWellFormed().trim() : "" };
}

function failed(error: unknown): SummaryFailure {
  if (error instanceof SkeinError && error.code === "context_overflow") {
    const { problem } = error.details;
    const said = typeof problem === "string" ? problem : error.message;
    return { failure: "overflow", note: `the prompt is too long for the summariser: ${lineOf(said)}` };
  }
  return { failure: "failed", note: `the summariser failed: ${lineOf(thrownText(error))}` };
}

function stopped(signal: AbortSignal | undefined): SummaryFailure {
  const reason: unknown = signal?.reason;
  const isTimeout = reason instanceof Error && reason.name === "TimeoutError";
  return isTimeout
    ? { failure: "timed_out", note: "the summariser did not answer in time" }
    : { failure: "aborted", note: "the compaction was aborted" };
}

function lineOf(text: string): string {
  return escapeToLine(truncateText(text, mostNoteCharacters));
}
