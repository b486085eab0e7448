import type { StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { inserted } from "../derive.ts";

const openingText = "(The conversation goes on from here.)";

/** Step 8: where the first turn must be a user's, a short one is put before any other. */
export function fixFirstTurn(
  messages: readonly TranscriptMessage[],
  { policy, record }: { readonly policy: TranscriptPolicy; readonly record: Recorder },
): StepResult {
  const first = messages[0];
  if (policy.firstTurn !== "user" || first === undefined || first.role === "user")
    return { messages, changes: [] };
  const opening = inserted({ role: "user" as const, content: openingText });
  const note = `The first turn must be a user's; a short one is put before the ${first.role} message.`;
  return { messages: [opening, ...messages], changes: [record("first_turn_added", note, first)] };
}
