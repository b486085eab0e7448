import type { Change, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { inserted } from "../derive.ts";
import { dropEmptyTurns } from "../turns/drop-empty-turns.ts";
import { joinUnanswered } from "../turns/join-unanswered.ts";
import { mergeTurns } from "../turns/merge-turns.ts";
import { separateToolAndUser } from "../turns/separate-tool-and-user.ts";
import { stripOpenCalls } from "../turns/strip-open-calls.ts";
import type { TurnRule } from "../turns/turn-rule.ts";

/** The rules of each kind of provider, in order. */
const rules: Readonly<Record<TranscriptPolicy["turns"], readonly TurnRule[]>> = {
  anthropic: [
    dropEmptyTurns,
    stripOpenCalls,
    joinUnanswered,
    mergeTurns("user"),
    mergeTurns("assistant"),
    endWithUser,
  ],
  gemini: [dropEmptyTurns, stripOpenCalls, joinUnanswered, mergeTurns("assistant"), endWithUser],
  mistral: [dropEmptyTurns, stripOpenCalls, joinUnanswered, endWithUser, separateToolAndUser],
  any: [dropEmptyTurns, stripOpenCalls, joinUnanswered, endWithUser],
};

/** The order of turns as the provider wants it; never an empty request, never one that ends in an assistant turn. */
export function validateTurns(
  messages: readonly TranscriptMessage[],
  { policy, record }: { readonly policy: TranscriptPolicy; readonly record: Recorder },
): StepResult {
  const changes: Change[] = [];
  const tell = (kind: string, note: string, message?: TranscriptMessage) =>
    changes.push(record(kind, note, message));
  const after = rules[policy.turns].reduce((turns, rule) => rule(turns, tell), messages);
  return { messages: after, changes };
}

const emptyText = "(There is no message.)";
const goOnText = "Continue.";

function endWithUser(...[messages, tell]: Parameters<TurnRule>): ReturnType<TurnRule> {
  const last = messages.at(-1);
  if (last === undefined) {
    tell("user_turn_added", "There is nothing to send; a short user turn is.");
    return [inserted({ role: "user", content: emptyText })];
  }
  if (last.role !== "assistant") return messages;
  tell("user_turn_added", "A request does not end in an assistant turn; a short user turn is added.", last);
  return [...messages, inserted({ role: "user", content: goOnText })];
}
