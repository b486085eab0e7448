import type { ContextMessage } from "../core/context.ts";
import { SkeinError } from "../core/errors.ts";
import { escapeToLine, thrownText } from "../core/text.ts";
import type { FenceOption } from "../store/work.ts";
import type { SectionId } from "../transcript/compaction/check-summary.ts";
import { checkSummary } from "../transcript/compaction/check-summary.ts";
import type { CompactionMode } from "../transcript/compaction/chunks.ts";
import { maxHistoryShareLimit, minHistoryShare } from "../transcript/compaction/chunks.ts";
import { compactionLimits, minContextWindow } from "../transcript/compaction/limits.ts";
import {
  addEarlierAsks,
  appendRequest,
  findPendingRequest,
  noAsks,
} from "../transcript/compaction/pending-request.ts";
import type { CutPlan, NothingToCut } from "../transcript/compaction/plan-cut.ts";
import { messageTokens } from "../transcript/compaction/plan-cut.ts";
import type { Summary, SummaryOptions, SummaryUsage } from "../transcript/compaction/summarize.ts";
import { makeSummary } from "../transcript/compaction/summarize.ts";
import type { Summarize, SummaryFailure } from "../transcript/compaction/summarize-piece.ts";
import { collectFiles, mergeFiles, noFiles, readFilesOf } from "../transcript/compaction/touched-files.ts";
import type { StoredSession, SummaryRange } from "./compaction-range.ts";
import type { HookRegistry } from "./hooks.ts";
import type { RuntimeContext } from "./runtime-context.ts";

export interface SessionSummary extends Summary {
  readonly fromHook: boolean;
}

const noUsage: SummaryUsage = { requests: 0, input: 0, output: 0 };

/** Obtains the summary from a hook or the summarizer. Rejects a summary that does not make the context smaller. */
export async function summaryFor(
  place: StoredSession,
  plan: CutPlan,
  range: SummaryRange,
  hooks: CompactionHooks,
  options: CompactionOptions,
): Promise<SessionSummary | CompactionNotDone> {
  const asked = await hooks.askBefore(plan);
  if (asked.cancel !== null) return notDone("cancelled", asked.cancel);
  const files = readFilesOf(await previousDetails(place, plan));
  const fromHook = asked.summary !== null;
  const older = plan.isCut ? { older: range.older() } : {};
  const made =
    asked.summary === null
      ? await makeSummary(plan, { ...options, files, ...older })
      : await checkHookSummary(asked.summary, plan, { ...options, files, ...older });
  if ("failure" in made) return notDone(made.failure, made.note);
  const replaced = plan.tokensBefore - plan.tokensKept + made.olderTokens;
  // If a hook summarized a truncated context, the size of the part it replaces is unknown.
  const isCounted = !fromHook || !plan.isCut;
  if (isCounted && messageTokens(summaryMessage(made.text)) >= replaced)
    return notDone("no_gain", "the summary is not shorter than the part it would replace");
  return { ...made, fromHook };
}

/** Returns the context message for a summary. */
export function summaryMessage(summary: string): ContextMessage {
  return { role: "compactionSummary", summary, timestamp: 0 };
}

/**
 * Accepts a hook's summary unless it is empty or too long. Its format is not checked. If the cut splits a turn, appends
 * the request of that turn.
 */
async function checkHookSummary(
  summary: string,
  plan: CutPlan,
  { contextWindow, files = noFiles, older }: Pick<SummaryOptions, "contextWindow" | "files" | "older">,
): Promise<Summary | SummaryFailure> {
  const { summaryTokens, requestTokens } = compactionLimits(contextWindow);
  const wellFormed = summary.toWellFormed();
  const { isBlank, isTooLong } = checkSummary(wellFormed, { summaryTokens, ask: null });
  if (isBlank) return { failure: "empty", note: "the summary from a hook is empty" };
  if (isTooLong)
    return {
      failure: "too_long",
      note: `the summary from a hook is too long: ${wellFormed.length} characters`,
    };
  const request = plan.splitTurn ? await requestIn(plan, older) : null;
  const text = request === null ? wellFormed : appendRequest(wellFormed, request, requestTokens);
  const touched = mergeFiles(files, collectFiles(plan.toSummarize));
  return { text, files: touched, chunks: 0, retried: false, missing: [], usage: noUsage, olderTokens: 0 };
}

/**
 * Returns the request of the split turn. Reads the older part to its end, because a later redaction can be detected
 * only if the whole part has been hashed.
 */
async function requestIn(plan: CutPlan, older: SummaryOptions["older"]): Promise<string | null> {
  let asks = addEarlierAsks(noAsks, plan.toSummarize);
  for await (const messages of older ?? []) asks = addEarlierAsks(asks, messages);
  return findPendingRequest(plan, asks);
}

async function previousDetails(
  { sessions, scope, sessionId }: StoredSession,
  plan: CutPlan,
): Promise<unknown> {
  if (plan.previousEntryId === null) return undefined;
  const entry = await sessions.entry(scope, sessionId, plan.previousEntryId);
  return entry?.type === "compaction" ? entry.details : undefined;
}

/** The hooks around one compaction. A failing hook never prevents the compaction from finishing. */
export class CompactionHooks {
  readonly #hooks: HookRegistry;
  readonly #ctx: RuntimeContext;

  constructor(hooks: HookRegistry, ctx: RuntimeContext) {
    this.#hooks = hooks;
    this.#ctx = ctx;
  }

  /** Calls the hooks that can cancel the compaction or supply the summary. A `HookStop` cancels the compaction. */
  async askBefore(
    plan: CutPlan,
  ): Promise<{ readonly cancel: string } | { readonly cancel: null; readonly summary: string | null }> {
    const { firstKeptEntryId, tokensBefore, previousSummary, isCut } = plan;
    const event = { firstKeptEntryId, tokensBefore, previousSummary, isCut, summary: null, ctx: this.#ctx };
    try {
      const asked = await this.#hooks.ask("before_compaction", { ...event, messages: [...plan.toSummarize] });
      return asked.cancel === null ? { cancel: null, summary: asked.summary } : { cancel: asked.cancel };
    } catch (error) {
      return { cancel: `a hook canceled it: ${lineOf(error)}` };
    }
  }

  /** Notifies the hooks of the compaction. A hook's error is returned in `hookFailed`. */
  async tellAfter(done: CompactionDone): Promise<CompactionDone> {
    const { entryId, summary, firstKeptEntryId, tokensBefore, tokensAfter } = done;
    const event = { entryId, summary, firstKeptEntryId, tokensBefore, tokensAfter, ctx: this.#ctx };
    try {
      await this.#hooks.notify("after_compaction", event);
      return done;
    } catch (error) {
      return { ...done, hookFailed: lineOf(error) };
    }
  }
}

function lineOf(error: unknown): string {
  return escapeToLine(thrownText(error));
}

/** Options for a compaction. */
export interface CompactionOptions {
  readonly summarize: Summarize;
  /** The model's window in tokens, 2,000 or more. */
  readonly contextWindow: number;
  /** `safeguard` sends smaller chunks to the summarizer, checks its answers, and asks again if an answer is invalid. */
  readonly mode: CompactionMode;
  /** In safeguard mode, the share of the window that one request can fill, from 0.1 to 0.9. Defaults to 0.5. */
  readonly maxHistoryShare?: number;
  readonly trigger: "threshold" | "manual" | "overflow";
  /** What the summary should emphasize. */
  readonly instructions?: string;
  readonly signal?: AbortSignal;
  /** The number of compactions this run has already had. Each compaction halves the amount that the next one keeps. */
  readonly compactions?: number;
  /** The context for hooks. Defaults to the user, agent and session. */
  readonly ctx?: RuntimeContext;
  /** Runs in the transaction of the write and rejects the write if the run no longer holds its session. */
  readonly fence?: FenceOption["fence"];
}

/** A compaction that has been written. */
export interface CompactionDone {
  readonly done: true;
  readonly entryId: string;
  readonly summary: string;
  readonly firstKeptEntryId: string;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** The number of chunks that were summarized, or 0 if a hook supplied the summary. */
  readonly chunks: number;
  readonly retried: boolean;
  /** Sections missing from the summary. */
  readonly missing: readonly SectionId[];
  readonly usage: SummaryUsage;
  /** The error from a hook that was notified of the compaction. */
  readonly hookFailed?: string;
}

/** Nothing was written. `no_gain` means that the summary is not shorter than the part it would replace. */
export interface CompactionNotDone {
  readonly done: false;
  readonly reason: NothingToCut | SummaryFailure["failure"] | "cancelled" | "no_gain" | "conflict";
  readonly note: string;
}

/** The result of a compaction. */
export type CompactionOutcome = CompactionDone | CompactionNotDone;

export function notDone(reason: CompactionNotDone["reason"], note: string): CompactionNotDone {
  return { done: false, reason, note };
}

/** Throws for invalid options before anything is read. */
export function checkCompactionOptions(options: CompactionOptions): void {
  const { contextWindow, mode, trigger, maxHistoryShare = minHistoryShare, compactions = 0 } = options;
  const isWindow = Number.isFinite(contextWindow) && contextWindow >= minContextWindow;
  if (!isWindow) refuse("contextWindow", `Set the model's window in tokens, ${minContextWindow} or more`);
  if (!["safeguard", "default"].includes(mode)) refuse("mode", "Use safeguard or default");
  if (!["threshold", "manual", "overflow"].includes(trigger))
    refuse("trigger", "Use threshold, manual or overflow");
  const isShare = maxHistoryShare >= minHistoryShare && maxHistoryShare <= maxHistoryShareLimit;
  if (typeof maxHistoryShare !== "number" || !isShare)
    refuse("maxHistoryShare", `Use a number from ${minHistoryShare} to ${maxHistoryShareLimit}, or omit it`);
  if (!Number.isSafeInteger(compactions) || compactions < 0)
    refuse("compactions", "Set the number of compactions so far, or omit it");
}

function refuse(name: keyof CompactionOptions, advice: string): never {
  throw new SkeinError("invalid_arguments", { problem: `The compaction option ${name} is invalid`, advice });
}
