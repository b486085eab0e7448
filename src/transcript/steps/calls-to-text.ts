import type { AssistantMessage, ToolResultMessage, UserMessage } from "../../core/messages.ts";
import type { Change, StepResult, TranscriptMessage } from "../contract.ts";
import type { StepOptions } from "../derive.ts";
import { derive, insertResult } from "../derive.ts";

/**
 * Sends earlier calls and results as text if a provider rejects calls in a request without tools. Results must
 * directly follow their calls.
 */
export function callsToText(
  messages: readonly TranscriptMessage[],
  { policy, tools, record }: Pick<StepOptions, "policy" | "tools" | "record">,
): StepResult {
  if (policy.callsWithoutTools === "native" || tools?.length !== 0) return { messages, changes: [] };
  const changes: Change[] = [];
  const after = messages.map((message) => {
    if (message.role === "toolResult") return convertResult(message);
    if (message.role !== "assistant" || !message.content.some(isCall)) return message;
    const note = "No tools are offered, so an answer's calls and their results are sent as text.";
    changes.push(record("calls_to_text", note, message));
    return convertCalls(message);
  });
  return { messages: changes.length === 0 ? messages : after, changes };
}

function isCall({ type }: { readonly type: string }): boolean {
  return type === "toolCall";
}

function convertCalls(message: AssistantMessage): AssistantMessage {
  const content = message.content.map((block) =>
    block.type === "toolCall"
      ? {
          type: "text" as const,
          text: `[Called the tool ${block.name} with ${JSON.stringify(block.arguments)}]`,
        }
      : block,
  );
  return derive(message, { content });
}

function convertResult(message: ToolResultMessage): UserMessage {
  const { toolName = "a tool", isError, content, timestamp } = message;
  const lead = isError === true ? `[The tool ${toolName} failed:]` : `[Result of the tool ${toolName}:]`;
  return insertResult({
    role: "user",
    content: [{ type: "text", text: lead }, ...content],
    ...(timestamp === undefined ? {} : { timestamp }),
  });
}
