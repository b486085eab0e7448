import type { Change, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { inserted } from "../derive.ts";
import { dropEmptyTurns } from "../turns/drop-empty-turns.ts";

const openingText = "(The conversation goes on from here.)";

/** Step 8: turns without content go; where the first one must be a user's, a short one is put before any other. */
export function fixFirstTurn(
  messages: readonly TranscriptMessage[],
  { policy, record }: { readonly policy: TranscriptPolicy; readonly record: Recorder },
): StepResult {
  const changes: Change[] = [];
  const turns = dropEmptyTurns(messages, (...told) => changes.push(record(...told)));
  const first = turns[0];
  if (policy.firstTurn !== "user" || first === undefined || first.role === "user")
    return { messages: turns, changes };
  const opening = inserted({ role: "user" as const, content: openingText });
  const note = `The first turn must be a user's; a short one is put before the ${first.role} message.`;
  changes.push(record("first_turn_added", note, first));
  return { messages: [opening, ...turns], changes };
}
