import type { ContextMessage } from "../../core/context.ts";
import type {
  Change,
  PreparedTranscript,
  StepResult,
  TranscriptMessage,
  TranscriptOptions,
  TranscriptPolicy,
} from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { EntryIds } from "../derive.ts";
import { annotateInterSessionMessages } from "../steps/annotate-inter-session-messages.ts";
import { callsToText } from "../steps/calls-to-text.ts";
import { downgradeReasoning } from "../steps/downgrade-reasoning.ts";
import { fixFirstTurn } from "../steps/fix-first-turn.ts";
import { limitHistory } from "../steps/limit-history.ts";
import { moveResultImages } from "../steps/move-result-images.ts";
import { normalizeThinking } from "../steps/normalize-thinking.ts";
import { pruneContext } from "../steps/prune-context.ts";
import { readContext } from "../steps/read-context.ts";
import { repairToolPairing } from "../steps/repair-tool-pairing.ts";
import { sanitizeImages } from "../steps/sanitize-images.ts";
import { sanitizeToolCalls } from "../steps/sanitize-tool-calls.ts";
import { stripToolResultDetails } from "../steps/strip-tool-result-details.ts";
import { truncateToolResults } from "../steps/truncate-tool-results.ts";
import { validateTurns } from "../steps/validate-turns.ts";

/** What every step may know. */
export interface StepOptions extends TranscriptOptions {
  readonly policy: TranscriptPolicy;
  readonly record: Recorder;
}

type Step = (
  messages: readonly TranscriptMessage[],
  options: StepOptions,
) => StepResult | Promise<StepResult>;

/** Behind the reading of the context, in this order. The last word is always that of the validation. */
export const steps: readonly Step[] = [
  annotateInterSessionMessages,
  sanitizeImages,
  normalizeThinking,
  sanitizeToolCalls,
  repairToolPairing,
  stripToolResultDetails,
  downgradeReasoning,
  fixFirstTurn,
  validateTurns,
  limitHistory,
  repairToolPairing,
  // Once more: a result that was moved to its call may be an old one now.
  sanitizeImages,
  moveResultImages,
  truncateToolResults,
  pruneContext,
  callsToText,
  validateTurns,
];

/**
 * Makes of the messages of a context what a provider accepts, whatever happened to them, and says what it did.
 * The same messages again change nothing.
 *
 * @example
 * ```ts
 * import { prepareTranscript, resolveTranscriptPolicy, SessionTree } from "skein";
 * const { messages, entryIds } = SessionTree.create({ cwd: "/home/ann" }).context();
 * const policy = resolveTranscriptPolicy({ provider: "anthropic", model: "claude-sonnet-4-5" });
 * const { messages: request, changes } = await prepareTranscript(messages, policy, { entryIds });
 * ```
 */
export async function prepareTranscript(
  messages: readonly ContextMessage[],
  policy: TranscriptPolicy,
  options: TranscriptOptions = {},
): Promise<PreparedTranscript> {
  const entryIds = new EntryIds(messages, options.entryIds);
  const changes: Change[] = [];
  let result: StepResult = readContext(messages, { record: entryIds.recorder("readContext") });
  for (const change of result.changes) changes.push(change);
  for (const step of steps) {
    const done = step(result.messages, { ...options, policy, record: entryIds.recorder(step.name) });
    result = done instanceof Promise ? await done : done;
    for (const change of result.changes) changes.push(change);
  }
  return { messages: result.messages, changes };
}
