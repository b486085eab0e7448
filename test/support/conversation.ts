import fc from "fast-check";
import type { ContextMessage, SessionContext } from "../../src/index.ts";
import type { AssistantMessage, ToolResultMessage, UserMessage } from "./text.ts";
import { estimateTokens } from "./text.ts";

/** Conversations for the compaction and pruning tests. */

const words = 1000;
const [once, twice] = [
  await estimateTokens(["word ".repeat(words)]),
  await estimateTokens(["word ".repeat(2 * words)]),
];
const tokensPerWord = (twice - once) / words;

/** Returns text of about this many tokens, regardless of how they are estimated. */
export function textOfTokens(tokens: number): string {
  return "word ".repeat(Math.max(1, Math.round(tokens / tokensPerWord))).trim();
}

export function user(text: string): UserMessage {
  return { role: "user", content: text, timestamp: 1 };
}

export function assistant(text: string, ...callIds: readonly string[]): AssistantMessage {
  const calls = callIds.map((id) => ({ type: "toolCall" as const, id, name: "look", arguments: {} }));
  const content = [...(text === "" ? [] : [{ type: "text" as const, text }]), ...calls];
  return { role: "assistant", content, stopReason: callIds.length > 0 ? "toolUse" : "stop", timestamp: 2 };
}

export function result(toolCallId: string, text = "found"): ToolResultMessage {
  return {
    role: "toolResult",
    toolCallId,
    toolName: "look",
    content: [{ type: "text", text }],
    timestamp: 3,
  };
}

export function summary(text: string): ContextMessage {
  return { role: "compactionSummary", summary: text, timestamp: 0 };
}

/** Returns a context with these messages and the IDs `e0`, `e1`, … */
export function contextOf(
  messages: readonly ContextMessage[],
  cut: string | null = null,
): Pick<SessionContext, "messages" | "entryIds" | "cut"> {
  return { messages, entryIds: messages.map((_, index) => `e${index}`), cut };
}

const size = fc.integer({ min: 1, max: 400 });
const text = fc.oneof(
  size.map((tokens) => textOfTokens(tokens)),
  fc.string({ unit: "grapheme", maxLength: 20 }),
);
/** There are only a few IDs, so they repeat. */
const callId = fc.constantFrom("a", "b", "c", "d");

const said: fc.Arbitrary<ContextMessage> = fc.oneof(
  { weight: 4, arbitrary: text.map((each) => user(each) as ContextMessage) },
  text.map(
    (each): ContextMessage => ({
      role: "custom",
      customType: "hook",
      content: each,
      display: true,
      timestamp: 1,
    }),
  ),
  fc.tuple(text, fc.boolean()).map(
    ([output, excludeFromContext]): ContextMessage => ({
      role: "bashExecution",
      command: "ls",
      output,
      cancelled: false,
      truncated: false,
      excludeFromContext,
      timestamp: 1,
    }),
  ),
  text.map((each): ContextMessage => ({ role: "branchSummary", summary: each, timestamp: 1 })),
);

/** A group of calls with their results, as agents write them. */
const group = fc
  .tuple(text, fc.uniqueArray(callId, { minLength: 1, maxLength: 4 }), text)
  .map(([before, ids, found]): ContextMessage[] => [
    assistant(before, ...ids),
    ...ids.map((id) => result(id, found)),
  ]);
const answer = text.map((each): ContextMessage[] => [assistant(each)]);
const turn = fc
  .tuple(fc.array(said, { minLength: 1, maxLength: 2 }), fc.array(fc.oneof(group, answer), { maxLength: 5 }))
  .map(([first, rest]) => [...first, ...rest.flat()]);

/** The effects of damage, crashes and other programs. Any message can be anywhere. */
const strange = fc
  .oneof(
    callId.map((id) => result(id) as ContextMessage),
    fc.uniqueArray(callId, { maxLength: 3 }).map((ids) => assistant("", ...ids) as ContextMessage),
    fc.constant({ role: "x-other", content: 1 } as unknown as ContextMessage),
    said,
  )
  .map((message) => [message]);

/** Any conversation, usually well-formed, with or without a preceding summary. */
export const conversation: fc.Arbitrary<ContextMessage[]> = fc
  .tuple(
    fc.option(text.map(summary), { nil: null }),
    fc.array(fc.oneof({ weight: 6, arbitrary: turn }, group, strange), { maxLength: 12 }),
  )
  .map(([first, rest]) => [...(first === null ? [] : [first]), ...rest.flat()]);
