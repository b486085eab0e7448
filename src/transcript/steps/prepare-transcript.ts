import type { ContextMessage } from "../../core/context.ts";
import type {
  Change,
  PreparedTranscript,
  StepResult,
  TranscriptMessage,
  TranscriptOptions,
  TranscriptPolicy,
} from "../contract.ts";
import type { StepOptions } from "../derive.ts";
import { EntryIds, traceStep } from "../derive.ts";
import { annotateInterSessionMessages } from "./annotate-inter-session-messages.ts";
import { callsToText } from "./calls-to-text.ts";
import { downgradeReasoning } from "./downgrade-reasoning.ts";
import { limitHistory } from "./limit-history.ts";
import { moveResultImages } from "./move-result-images.ts";
import { normalizeContext } from "./normalize-context.ts";
import { normalizeThinking } from "./normalize-thinking.ts";
import { pruneContext } from "./prune-context.ts";
import { repairToolPairing } from "./repair-tool-pairing.ts";
import { sanitizeImages } from "./sanitize-images.ts";
import { sanitizeToolCalls } from "./sanitize-tool-calls.ts";
import { stripToolResultDetails, truncateToolResults } from "./truncate-tool-results.ts";
import { fixFirstTurn, validateTurns } from "./validate-turns.ts";

type Step = (
  messages: readonly TranscriptMessage[],
  options: StepOptions,
) => StepResult | Promise<StepResult>;

/** The steps in order, after the context has been read. Validation always runs last. */
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
  // Runs again because a result that was moved to its call might now be old.
  sanitizeImages,
  moveResultImages,
  truncateToolResults,
  pruneContext,
  callsToText,
  validateTurns,
];

/**
 * Converts a context to a transcript that a provider accepts, and lists every change. Preparing the result again
 * changes nothing.
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
  let result: StepResult = normalizeContext(messages, { record: entryIds.recorder("normalizeContext") });
  traceStep(result);
  for (const change of result.changes) changes.push(change);
  for (const step of steps) {
    const done = step(result.messages, { ...options, policy, record: entryIds.recorder(step.name) });
    result = done instanceof Promise ? await done : done;
    traceStep(result);
    for (const change of result.changes) changes.push(change);
  }
  return { messages: result.messages, changes };
}
