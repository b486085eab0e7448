import { SkeinError } from "../core/errors.ts";
import type { AppendOptions } from "../store/contract.ts";
import type { SectionId } from "../transcript/compaction/check-summary.ts";
import type { CompactionMode } from "../transcript/compaction/chunks.ts";
import { maxHistoryShareLimit, minHistoryShare } from "../transcript/compaction/chunks.ts";
import { minContextWindow } from "../transcript/compaction/limits.ts";
import type { NothingToCut } from "../transcript/compaction/plan-cut.ts";
import type { SummaryUsage } from "../transcript/compaction/summarize.ts";
import type { Summarize, SummaryFailure } from "../transcript/compaction/summarize-piece.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/** What a compaction of a session is told, and what it comes to. */

/** How a session is compacted. */
export interface CompactionOptions {
  readonly summarize: Summarize;
  /** The model's window in tokens, 2,000 or more. */
  readonly contextWindow: number;
  /** `safeguard`: the summarizer gets smaller pieces, its answers are checked, and it is asked once more. */
  readonly mode: CompactionMode;
  /** In safeguard mode, the share of the window that one request may fill, 0.1 to 0.9; by default a half. */
  readonly maxHistoryShare?: number;
  readonly trigger: "threshold" | "manual" | "overflow";
  /** What the summary is to mind above all. */
  readonly instructions?: string;
  readonly signal?: AbortSignal;
  /** How many compactions this run has had; each further one keeps half as much. */
  readonly compactions?: number;
  /** What hooks are given; by default the user, the agent and the session. */
  readonly ctx?: RuntimeContext;
  /** Asked at the moment of the write, for a run that may have lost its session. */
  readonly fence?: AppendOptions["fence"];
}

/** A compaction that is written. */
export interface CompactionDone {
  readonly done: true;
  readonly entryId: string;
  readonly summary: string;
  readonly firstKeptEntryId: string;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** Pieces that the summarizer got; 0 where a hook gave the summary. */
  readonly chunks: number;
  readonly retried: boolean;
  /** Sections that the summary lacks even so. */
  readonly missing: readonly SectionId[];
  readonly usage: SummaryUsage;
  /** What a hook stopped with that was told of it. */
  readonly hookFailed?: string;
}

/** Nothing was written. `no_gain`: the summary is no shorter than what it would stand in for. */
export interface CompactionNotDone {
  readonly done: false;
  readonly reason: NothingToCut | SummaryFailure["failure"] | "cancelled" | "no_gain" | "conflict";
  readonly note: string;
}

/** What a compaction came to. */
export type CompactionOutcome = CompactionDone | CompactionNotDone;

export function notDone(reason: CompactionNotDone["reason"], note: string): CompactionNotDone {
  return { done: false, reason, note };
}

/** Refuses options that would have a summary made of nothing, before anything is read or asked. */
export function checkCompactionOptions(options: CompactionOptions): void {
  const { contextWindow, mode, trigger, maxHistoryShare = minHistoryShare, compactions = 0 } = options;
  const isWindow = Number.isFinite(contextWindow) && contextWindow >= minContextWindow;
  if (!isWindow) refuse("contextWindow", `Give the model's window in tokens, ${minContextWindow} or more`);
  if (!["safeguard", "default"].includes(mode)) refuse("mode", "Use safeguard or default");
  if (!["threshold", "manual", "overflow"].includes(trigger))
    refuse("trigger", "Use threshold, manual or overflow");
  const isShare = maxHistoryShare >= minHistoryShare && maxHistoryShare <= maxHistoryShareLimit;
  if (typeof maxHistoryShare !== "number" || !isShare)
    refuse(
      "maxHistoryShare",
      `Use a number from ${minHistoryShare} to ${maxHistoryShareLimit}, or leave it out`,
    );
  if (!Number.isSafeInteger(compactions) || compactions < 0)
    refuse("compactions", "Give how many compactions there were, or leave it out");
}

function refuse(name: keyof CompactionOptions, advice: string): never {
  throw new SkeinError("invalid_arguments", { problem: `The compaction's ${name} will not do`, advice });
}
