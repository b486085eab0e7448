import type { Change, StepResult, TranscriptMessage } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { without } from "../derive.ts";

/** Step 6: `details` of a tool's result is for programs, and may hold anything; it never reaches a model. */
export function stripToolResultDetails(
  messages: readonly TranscriptMessage[],
  { record }: { readonly record: Recorder },
): StepResult {
  const changes: Change[] = [];
  const after = messages.map((message) => {
    if (message.role !== "toolResult" || message.details === undefined) return message;
    changes.push(record("details_removed", "Details of a result are for programs only.", message));
    return without(message, "details");
  });
  return { messages: changes.length > 0 ? after : messages, changes };
}
