import { SkeinError } from "../../core/errors.ts";
import { escapeToLine, thrownText } from "../../core/text.ts";
import { truncateText } from "./truncate-text.ts";

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
export async function askSummariser(
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
