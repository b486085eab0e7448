import type { AssistantBlock, AssistantMessage, ThinkingBlock } from "../../core/messages.ts";
import type { StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { StepOptions } from "../derive.ts";
import { derive, mapMessages } from "../derive.ts";
import { readReasoningItem } from "./normalize-thinking.ts";

/**
 * Step 7: handles thinking whose answer is missing. The Responses API accepts a reasoning item only once and only with
 * the output that follows it. Anthropic rejects a turn that ends with thinking, and Mistral rejects a turn that
 * contains only thinking. Such thinking is sent as text or dropped.
 */
export function downgradeReasoning(
  messages: readonly TranscriptMessage[],
  { policy, record }: Pick<StepOptions, "policy" | "record">,
): StepResult {
  if (policy.thinking === "base64" || policy.thinking === "none") return { messages, changes: [] };
  const sent = new Set<string>();
  return mapMessages(messages, record, (message, tell) =>
    message.role === "assistant" && message.content.some((block) => block.type === "thinking")
      ? downgradeMessage(message, sent, policy, (note) => tell("reasoning_downgraded", note))
      : message,
  );
}

function downgradeMessage(
  message: AssistantMessage,
  sent: Set<string>,
  policy: TranscriptPolicy,
  tell: (note: string) => void,
): AssistantMessage {
  const lastOther = message.content.findLastIndex((block) => block.type !== "thinking");
  // Plain thinking requires other content somewhere in its turn, not necessarily after it.
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
    tell(
      isRepeated
        ? "A reasoning item is sent only once."
        : "The thinking that this item belongs to was removed.",
    );
    return isRepeated ? [] : toText(block, policy);
  });
  return changed ? derive(message, { content }) : message;
}

/** Whether a block belongs to a reasoning item. Several parts of a summary can share one item. */
function isOfItem(block: AssistantBlock | undefined, id: string): boolean {
  return block?.type === "thinking" && readReasoningItem(block.thinkingSignature)?.id === id;
}

function toText(block: ThinkingBlock, { foreignThinking }: TranscriptPolicy): AssistantBlock[] {
  if (foreignThinking === "drop" || block.thinking.trim() === "") return [];
  return [{ type: "text", text: block.thinking }];
}
