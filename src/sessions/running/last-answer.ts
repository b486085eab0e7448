import type { Entry } from "../../core/entries.ts";
import { textOf } from "../../core/messages.ts";

/** The last answer of a branch, as the end of a run tells it. */
export function lastAnswer(tail: readonly Entry[]): {
  readonly reply: string;
  readonly entryId: string;
  readonly error: string;
} {
  const entry = tail.findLast((each) => each.type === "message" && each.message.role === "assistant");
  if (entry?.type !== "message" || entry.message.role !== "assistant")
    return { reply: "", entryId: "", error: "" };
  const { content, errorMessage } = entry.message;
  return { reply: textOf(content), entryId: entry.id, error: errorMessage ?? "The model could not answer." };
}

/** What the model said since somebody else did, calls and their results apart; blank: nothing. */
export function lastWords(tail: readonly Entry[]): string {
  const last = tail.findLast(
    (each) =>
      each.type === "custom_message" || (each.type === "message" && each.message.role !== "toolResult"),
  );
  return last?.type === "message" && last.message.role === "assistant" ? textOf(last.message.content) : "";
}
