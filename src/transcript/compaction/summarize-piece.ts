import { SkeinError } from "../../core/errors.ts";
import { escapeToLine, thrownText } from "../../core/text.ts";
import { escapeTags } from "../model-message.ts";
import { textTokens } from "../text-tokens.ts";
import type { SectionId, SummaryCheck } from "./check-summary.ts";
import { checkSummary, describeProblems, hasMostSections, isComplete } from "./check-summary.ts";
import type { CompactionMode } from "./chunks.ts";
import { truncateText, truncateToTokens } from "./chunks.ts";
import { compactionLimits, maxSummaryCharacters } from "./limits.ts";
import { removeRequest } from "./pending-request.ts";
import type { PromptParts } from "./prompts.ts";
import { summarizerSystem, summaryPrompt } from "./prompts.ts";

interface PieceOptions {
  readonly summarize: Summarize;
  readonly mode: CompactionMode;
  readonly contextWindow: number;
  readonly signal?: AbortSignal;
  /** The request that the notes must mention, or `null` if there is none. */
  readonly ask: string | null;
  /** Called after each request with its estimated input and output tokens. */
  readonly spent: (input: number, output: number) => void;
}

type PieceParts = Omit<PromptParts, "mostCharacters" | "problems">;

export interface PieceSummary {
  readonly text: string;
  readonly retried: boolean;
  /** Missing or empty sections. */
  readonly missing: readonly SectionId[];
}

export async function summarizePiece(
  parts: PieceParts,
  options: PieceOptions,
): Promise<PieceSummary | SummaryFailure> {
  const { summaryTokens } = compactionLimits(options.contextWindow);
  const check = (text: string) => checkSummary(text, { summaryTokens, ask: options.ask });
  const first = await requestSummary(parts, [], options);
  if ("failure" in first) return first;
  const found = check(first.text);
  if (options.mode === "default") return checkAnswer(first.text, found, { retried: false, anyShape: true });
  const before = checkAnswer(first.text, found, { retried: false, anyShape: false });
  if (isComplete(found)) return before;
  const second = await requestSummary(
    parts,
    describeProblems(found, maxSummaryCharactersFor(summaryTokens)),
    options,
  );
  const again =
    "failure" in second
      ? second
      : checkAnswer(second.text, check(second.text), { retried: true, anyShape: false });
  if ("failure" in before || ("failure" in again && again.failure === "aborted")) return again;
  const isWorse = "failure" in again || again.missing.length > before.missing.length;
  return isWorse ? { ...before, retried: true } : again;
}

async function requestSummary(
  parts: PieceParts,
  problems: readonly string[],
  { summarize, contextWindow, signal, spent }: PieceOptions,
): Promise<{ readonly text: string } | SummaryFailure> {
  const { summaryTokens } = compactionLimits(contextWindow);
  const summary = parts.summary === null ? null : truncateToTokens(parts.summary, summaryTokens);
  const request: SummaryRequest = {
    system: summarizerSystem,
    prompt: summaryPrompt({
      ...parts,
      summary,
      problems,
      mostCharacters: maxSummaryCharactersFor(summaryTokens),
    }),
    maxTokens: summaryTokens,
    ...(signal === undefined ? {} : { signal }),
  };
  const answer = await askSummarizer(summarize, request);
  const input = textTokens(request.system) + textTokens(request.prompt);
  spent(input, "text" in answer ? textTokens(answer.text) : 0);
  return "text" in answer ? { text: removeRequest(escapeTags(answer.text)) } : answer;
}

/**
 * Returns the maximum number of characters in a summary. In scripts with one token per character, the token limit is
 * reached first.
 */
function maxSummaryCharactersFor(summaryTokens: number): number {
  return Math.min(maxSummaryCharacters, summaryTokens * 3);
}

/** Checks whether an answer can be used. With `anyShape`, its sections are not checked. */
function checkAnswer(
  text: string,
  check: SummaryCheck,
  { retried, anyShape }: { readonly retried: boolean; readonly anyShape: boolean },
): PieceSummary | SummaryFailure {
  const missing = [...check.missing, ...check.empty];
  if (check.isBlank) return { failure: "empty", note: "the summarizer returned nothing" };
  if (check.isTooLong)
    return { failure: "too_long", note: `the summary is too long: ${text.length} characters` };
  if (!anyShape && !hasMostSections(check))
    return { failure: "poor", note: `the summary lacks ${missing.length} of its sections` };
  return { text, retried, missing };
}

/** One prompt to a summarizer. */
export interface SummaryRequest {
  readonly system: string;
  readonly prompt: string;
  /** The maximum number of tokens in the answer. */
  readonly maxTokens: number;
  readonly signal?: AbortSignal;
}

/**
 * Writes a summary, usually with a model. If it fails or never returns, the session is not changed. If it throws a
 * `SkeinError` with the code `context_overflow`, it is called again with smaller prompts.
 */
export type Summarize = (request: SummaryRequest) => Promise<string>;

export interface SummaryFailure {
  /**
   * `failed` means that the summarizer threw an error. `overflow` means that the prompt was too long. `empty`,
   * `too_long` and `poor` mean that the answer was unusable. `timed_out` and `aborted` mean that the signal was aborted
   * first. `nothing_said` means that the range contains nothing that a model sees.
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

/** Makes one request. Never throws. Stops waiting when the signal is aborted. */
async function askSummarizer(
  summarize: Summarize,
  request: SummaryRequest,
): Promise<{ readonly text: string } | SummaryFailure> {
  const { signal } = request;
  if (signal?.aborted === true) return toAbortFailure(signal);
  const { promise: untilSignal, resolve } = Promise.withResolvers<SummaryFailure>();
  const onAbort = () => resolve(toAbortFailure(signal));
  signal?.addEventListener("abort", onAbort, { once: true });
  const asked = async () => toAnswer(await summarize(request));
  const answered = asked().catch((error: unknown) =>
    signal?.aborted === true ? toAbortFailure(signal) : toFailure(error),
  );
  try {
    return await Promise.race([answered, untilSignal]);
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

function toAnswer(answer: unknown): { readonly text: string } {
  return { text: typeof answer === "string" ? answer.toWellFormed().trim() : "" };
}

function toFailure(error: unknown): SummaryFailure {
  if (error instanceof SkeinError && error.code === "context_overflow") {
    const { problem } = error.details;
    const said = typeof problem === "string" ? problem : error.message;
    return { failure: "overflow", note: `the prompt is too long for the summarizer: ${lineOf(said)}` };
  }
  return { failure: "failed", note: `the summarizer failed: ${lineOf(thrownText(error))}` };
}

function toAbortFailure(signal: AbortSignal | undefined): SummaryFailure {
  const reason: unknown = signal?.reason;
  const isTimeout = reason instanceof Error && reason.name === "TimeoutError";
  return isTimeout
    ? { failure: "timed_out", note: "the summarizer did not respond in time" }
    : { failure: "aborted", note: "the compaction was aborted" };
}

function lineOf(text: string): string {
  return escapeToLine(truncateText(text, mostNoteCharacters));
}
