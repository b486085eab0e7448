import type { ContextMessage } from "../core/context.ts";
import { escapeToLine } from "../core/text.ts";
import type { SummaryFailure } from "../transcript/compaction/ask-summariser.ts";
import type { CutPlan } from "../transcript/compaction/plan-cut.ts";
import { messageTokens } from "../transcript/compaction/plan-cut.ts";
import type { Summary, SummaryUsage } from "../transcript/compaction/summarise.ts";
import { makeSummary } from "../transcript/compaction/summarise.ts";
import { filesIn, filesOf, withFiles } from "../transcript/compaction/touched-files.ts";
import type {
  CompactionDone,
  CompactionHooks,
  CompactionNotDone,
  CompactionOptions,
} from "./compaction-outcome.ts";
import { notDone } from "./compaction-outcome.ts";
import type { SessionPlace, SummaryRange } from "./compaction-range.ts";

/** The summary for a session, from a hook or from the summariser, and the hooks around it. */

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
  const asked = await askBefore(hooks, plan);
  if ("cancel" in asked) return notDone("cancelled", asked.cancel);
  const files = filesOf(await previousDetails(place, plan));
  const fromHook = asked.summary !== null;
  const older = plan.isCut ? { older: range.older() } : {};
  const made =
    asked.summary === null
      ? await makeSummary(plan, { ...options, files, ...older })
      : given(asked.summary, withFiles(files, filesIn(plan.toSummarise)));
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

/** Tells that it is done; what that fails with costs nothing but itself. */
export async function tellAfter(hooks: CompactionHooks, done: CompactionDone): Promise<CompactionDone> {
  try {
    await hooks.after?.(done);
    return done;
  } catch (error) {
    return { ...done, hookFailed: messageOf(error) };
  }
}

async function askBefore(
  hooks: CompactionHooks,
  plan: CutPlan,
): Promise<{ readonly cancel: string } | { readonly summary: string | null }> {
  try {
    return (await hooks.before?.(plan)) ?? { summary: null };
  } catch (error) {
    return { cancel: `a hook failed: ${messageOf(error)}` };
  }
}

function given(text: string, files: Summary["files"]): Summary | SummaryFailure {
  if (text.trim() === "") return { failure: "empty", note: "the summary that a hook gave is empty" };
  return { text, files, chunks: 0, retried: false, missing: [], usage: noUsage, olderTokens: 0 };
}

async function previousDetails(
  { sessions, scope, sessionId }: SessionPlace,
  plan: CutPlan,
): Promise<unknown> {
  if (plan.previousEntryId === null) return undefined;
  const entry = await sessions.entry(scope, sessionId, plan.previousEntryId);
  return entry?.type === "compaction" ? entry.details : undefined;
}

function messageOf(error: unknown): string {
  return escapeToLine(error instanceof Error ? error.message : String(error));
}
