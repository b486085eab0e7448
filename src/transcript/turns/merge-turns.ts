import type { AssistantBlock, AssistantMessage, UserMessage } from "../../core/messages.ts";
import { blocksOf } from "../blocks-of.ts";
import type { TranscriptMessage } from "../contract.ts";
import { merged } from "../derive.ts";
import type { TurnRule } from "./turn-rule.ts";

/** Consecutive turns of one role become one. */
export function mergeTurns(role: "user" | "assistant"): TurnRule {
  return (messages, tell) => {
    if (!messages.some((message, index) => message.role === role && messages[index + 1]?.role === role))
      return messages;
    const after: TranscriptMessage[] = [];
    for (let at = 0; at < messages.length; ) {
      const group = groupFrom(messages, at, role);
      at += Math.max(1, group.length);
      if (group.length < 2) {
        after.push(messages[at - 1] as TranscriptMessage);
        continue;
      }
      tell("turns_merged", `Turns of the ${role} in a row (${group.length}) become one.`, group.at(-1));
      after.push(
        role === "user"
          ? mergedUser(group as [UserMessage, ...UserMessage[]])
          : mergedAssistant(group as [AssistantMessage, ...AssistantMessage[]]),
      );
    }
    return after;
  };
}

function groupFrom(
  messages: readonly TranscriptMessage[],
  from: number,
  role: string,
): readonly TranscriptMessage[] {
  let end = from;
  while (messages[end]?.role === role) end++;
  return messages.slice(from, end);
}

function mergedUser(group: readonly [UserMessage, ...UserMessage[]]): UserMessage {
  return merged(group, { content: group.flatMap((message) => [...blocksOf(message.content)]) });
}

/** Signed blocks are this model's own by now, and stay so by its name. */
function mergedAssistant(group: readonly [AssistantMessage, ...AssistantMessage[]]): AssistantMessage {
  const content = group.flatMap((message) => message.content);
  const signer = group.findLast((message) => message.content.some(isSigned)) ?? group.at(-1);
  const { provider, model, api } = signer ?? group[0];
  const origin = Object.fromEntries(
    Object.entries({ provider, model, api }).filter(([, value]) => value !== undefined),
  );
  return merged(group, { content, ...origin });
}

function isSigned(block: AssistantBlock): boolean {
  if (block.type === "thinking" || block.skein?.providerMetadata !== undefined) return true;
  return block.type === "text" ? block.textSignature !== undefined : block.thoughtSignature !== undefined;
}
