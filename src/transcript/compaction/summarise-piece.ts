import { escapeTags } from "../tags.ts";
import { textTokens } from "../text-tokens.ts";
import type { Summarise, SummaryFailure, SummaryRequest } from "./ask-summariser.ts";
import { askSummariser } from "./ask-summariser.ts";
import type { SummaryCheck } from "./check-summary.ts";
import { checkSummary, hasMostSections, isFine, problemsOf } from "./check-summary.ts";
import type { CompactionMode } from "./chunks.ts";
import { compactionLimits, mostSummaryCharacters } from "./limits.ts";
import type { PromptParts } from "./prompts.ts";
import { summariserSystem, summaryPrompt } from "./prompts.ts";
import { withoutRequest } from "./request-under-way.ts";
import type { SectionId } from "./sections.ts";
import { truncateToTokens } from "./truncate-text.ts";

/** The notes on one piece of a range: asked for, checked, and in safeguard mode asked for once more. */

export interface PieceOptions {
  readonly summarise: Summarise;
  readonly mode: CompactionMode;
  readonly contextWindow: number;
  readonly signal?: AbortSignal;
  /** What the notes have to mention; `null`: nothing in particular. */
  readonly ask: string | null;
  /** Told of each request: what it came to, and what the answer did. */
  readonly spent: (input: number, output: number) => void;
}

export type PieceParts = Omit<PromptParts, "mostCharacters" | "problems">;

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
