import type { AssistantBlock, AssistantMessage, ThinkingBlock } from "../../core/messages.ts";
import type { Change, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { derive } from "../derive.ts";
import { readReasoningItem } from "./normalize-thinking.ts";

/**
 * Step 7: the Responses API takes a reasoning item only once, and only with what was said or called right after it;
 * Anthropic takes no turn that ends in thinking, and Mistral none that is nothing else. One whose partner is gone goes out
 * as text or not at all.
 */
export function downgradeReasoning(
  messages: readonly TranscriptMessage[],
  { policy, record }: { readonly policy: TranscriptPolicy; readonly record: Recorder },
): StepResult {
  if (policy.thinking === "base64" || policy.thinking === "none") return { messages, changes: [] };
  const changes: Change[] = [];
  const sent = new Set<string>();
  let changed = false;
  const after = messages.map((message) => {
    if (message.role !== "assistant" || !message.content.some((block) => block.type === "thinking"))
      return message;
    const done = downgradeMessage(message, sent, policy, (note) =>
      changes.push(record("reasoning_downgraded", note, message)),
    );
    if (done !== message) changed = true;
    return done;
  });
  return { messages: changed ? after : messages, changes };
}

function downgradeMessage(
  message: AssistantMessage,
  sent: Set<string>,
  policy: TranscriptPolicy,
  tell: (note: string) => void,
): AssistantMessage {
  const lastOther = message.content.findLastIndex((block) => block.type !== "thinking");
  // Plain thinking needs a partner somewhere in its turn, not behind it.
  const last = policy.thinking === "plain" && lastOther !== -1 ? message.content.length : lastOther;
  let changed = false;
  const content = message.content.flatMap((block, index): AssistantBlock[] => {
    if (block.type !== "thinking") return [block];
    const id = readReasoningItem(block.thinkingSignature)?.id;
    const isRepeated = id !== undefined && sent.has(id) && !isOfItem(message.content[index - 1], id);
    if (index < last && !isRepeated) {
      if (id !== undefined) sent.add(id);
      return [block];
    }
    changed = true;
    tell(isRepeated ? "A reasoning item is sent only once." : "What belongs to the thinking is gone.");
    return isRepeated ? [] : toText(block, policy);
  });
  return changed ? derive(message, { content }) : message;
}

/** Several parts of one summary are one item. */
function isOfItem(block: AssistantBlock | undefined, id: string): boolean {
  return block?.type === "thinking" && readReasoningItem(block.thinkingSignature)?.id === id;
}

function toText(block: ThinkingBlock, { foreignThinking }: TranscriptPolicy): AssistantBlock[] {
  if (foreignThinking === "drop" || block.thinking.trim() === "") return [];
  return [{ type: "text", text: block.thinking }];
}
