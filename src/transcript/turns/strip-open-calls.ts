import type { AssistantMessage } from "../../core/messages.ts";
import type { TranscriptMessage } from "../contract.ts";
import { derive } from "../derive.ts";
import type { TurnRule } from "./turn-rule.ts";

const omittedText = "[tool calls omitted]";

/** Calls that no result follows, left by a policy that does not pair, are stripped; an emptied turn says so. */
export function stripOpenCalls(...[messages, tell]: Parameters<TurnRule>): ReturnType<TurnRule> {
  let changed = false;
  const after = messages.map((message, index) => {
    if (message.role !== "assistant" || isAnswered(message, messages, index)) return message;
    const answered = answeredBehind(messages, index);
    const content = message.content.filter((block) => block.type !== "toolCall" || answered.has(block.id));
    if (content.length === message.content.length) return message;
    changed = true;
    tell("call_removed", "Calls without a result are stripped.", message);
    const left: AssistantMessage["content"] =
      content.length > 0 ? content : [{ type: "text", text: omittedText }];
    return derive(message, { content: left });
  });
  return changed ? after : messages;
}

/** Whether the results follow in the calls' order, as they do once they are paired. */
function isAnswered(
  message: AssistantMessage,
  messages: readonly TranscriptMessage[],
  index: number,
): boolean {
  let at = index;
  for (const block of message.content) {
    if (block.type !== "toolCall") continue;
    const result = messages[++at];
    if (result?.role !== "toolResult" || result.toolCallId !== block.id) return false;
  }
  return true;
}

function answeredBehind(messages: readonly TranscriptMessage[], index: number): ReadonlySet<string> {
  const ids = new Set<string>();
  for (let at = index + 1; ; at++) {
    const message = messages[at];
    if (message?.role !== "toolResult") return ids;
    ids.add(message.toolCallId);
  }
}
