import type { ContextMessage } from "../core/context.ts";
import { escapeToLine, thrownText } from "../core/text.ts";
import { checkSummary } from "../transcript/compaction/check-summary.ts";
import { compactionLimits } from "../transcript/compaction/limits.ts";
import {
  addEarlierAsks,
  appendRequest,
  findPendingRequest,
  noAsks,
} from "../transcript/compaction/pending-request.ts";
import type { CutPlan } from "../transcript/compaction/plan-cut.ts";
import { messageTokens } from "../transcript/compaction/plan-cut.ts";
import type { Summary, SummaryOptions, SummaryUsage } from "../transcript/compaction/summarize.ts";
import { makeSummary } from "../transcript/compaction/summarize.ts";
import type { SummaryFailure } from "../transcript/compaction/summarize-piece.ts";
import { collectFiles, mergeFiles, noFiles, readFilesOf } from "../transcript/compaction/touched-files.ts";
import type { CompactionDone, CompactionNotDone, CompactionOptions } from "./compaction-options.ts";
import { notDone } from "./compaction-options.ts";
import type { SessionPlace, SummaryRange } from "./compaction-range.ts";
import type { HookRegistry } from "./hooks.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/** The summary for a session, from a hook or from the summarizer. */

export interface SessionSummary extends Summary {
  readonly fromHook: boolean;
}

const noUsage: SummaryUsage = { requests: 0, input: 0, output: 0 };

/** Only a summary that makes the context smaller. */
export async function summaryFor(
  place: SessionPlace,
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
      : await given(asked.summary, plan, { ...options, files, ...older });
  if ("failure" in made) return notDone(made.failure, made.note);
  const replaced = plan.tokensBefore - plan.tokensKept + made.olderTokens;
  // Where a hook gave the summary of a cut context, nobody has counted what is replaced.
  const isCounted = !fromHook || !plan.isCut;
  if (isCounted && messageTokens(summaryMessage(made.text)) >= replaced)
    return notDone("no_gain", "the summary is no shorter than what it would stand in for");
  return { ...made, fromHook };
}

/** The message that a summary becomes. */
export function summaryMessage(summary: string): ContextMessage {
  return { role: "compactionSummary", summary, timestamp: 0 };
}

/**
 * A summary that a hook gave: in any shape, but not nothing, and no longer than the summarizer's may be. What the turn
 * works on is added to it as it is to any other.
 */
async function given(
  summary: string,
  plan: CutPlan,
  { contextWindow, files = noFiles, older }: Pick<SummaryOptions, "contextWindow" | "files" | "older">,
): Promise<Summary | SummaryFailure> {
  const { summaryTokens, requestTokens } = compactionLimits(contextWindow);
  const said = summary.toWellFormed();
  const { isBlank, isTooLong } = checkSummary(said, { summaryTokens, ask: null });
  if (isBlank) return { failure: "empty", note: "the summary that a hook gave is empty" };
  if (isTooLong)
    return {
      failure: "too_long",
      note: `the summary that a hook gave is too long: ${said.length} characters`,
    };
  const request = plan.splitTurn ? await requestIn(plan, older) : null;
  const text = request === null ? said : appendRequest(said, request, requestTokens);
  const touched = mergeFiles(files, collectFiles(plan.toSummarize));
  return { text, files: touched, chunks: 0, retried: false, missing: [], usage: noUsage, olderTokens: 0 };
}

/** All of the older part is read, so that a redaction in it shows. */
async function requestIn(plan: CutPlan, older: SummaryOptions["older"]): Promise<string | null> {
  let asks = addEarlierAsks(noAsks, plan.toSummarize);
  for await (const messages of older ?? []) asks = addEarlierAsks(asks, messages);
  return findPendingRequest(plan, asks);
}

async function previousDetails(
  { sessions, scope, sessionId }: SessionPlace,
  plan: CutPlan,
): Promise<unknown> {
  if (plan.previousEntryId === null) return undefined;
  const entry = await sessions.entry(scope, sessionId, plan.previousEntryId);
  return entry?.type === "compaction" ? entry.details : undefined;
}

/** The hooks around one compaction. Whatever they do, the compaction comes to an outcome. */
export class CompactionHooks {
  readonly #hooks: HookRegistry;
  readonly #ctx: RuntimeContext;

  constructor(hooks: HookRegistry, ctx: RuntimeContext) {
    this.#hooks = hooks;
    this.#ctx = ctx;
  }

  /** They may call it off, or give the summary. One that wants to stop things calls it off. */
  async askBefore(
    plan: CutPlan,
  ): Promise<{ readonly cancel: string } | { readonly cancel: null; readonly summary: string | null }> {
    const { firstKeptEntryId, tokensBefore, previousSummary, isCut } = plan;
    const event = { firstKeptEntryId, tokensBefore, previousSummary, isCut, summary: null, ctx: this.#ctx };
    try {
      const asked = await this.#hooks.ask("before_compaction", { ...event, messages: [...plan.toSummarize] });
      return asked.cancel === null ? { cancel: null, summary: asked.summary } : { cancel: asked.cancel };
    } catch (error) {
      return { cancel: `a hook stopped it: ${lineOf(error)}` };
    }
  }

  /** Tells that it is done; what that fails with costs nothing but itself. */
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
