import type { AssistantMessage, ToolResultMessage, UserMessage } from "../../core/messages.ts";
import type { Change, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { derive, insertMessage } from "../derive.ts";

interface Options {
  readonly policy: Pick<TranscriptPolicy, "callsWithoutTools">;
  readonly tools?: readonly string[];
  readonly record: Recorder;
}

/**
 * Where a provider refuses calls in a request that offers no tools, calls and results of the history go out as text: the
 * model still reads what was done and what came of it. Results must stand behind their calls.
 */
export function callsToText(
  messages: readonly TranscriptMessage[],
  { policy, tools, record }: Options,
): StepResult {
  if (policy.callsWithoutTools === "native" || tools?.length !== 0) return { messages, changes: [] };
  const changes: Change[] = [];
  const after = messages.map((message) => {
    if (message.role === "toolResult") return convertResult(message);
    if (message.role !== "assistant" || !message.content.some(isCall)) return message;
    const note = "No tools are offered, so the calls of an answer and their results are sent as text.";
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
  // Not a turn of the conversation: the history limit must not count it.
  return insertMessage({
    role: "user",
    content: [{ type: "text", text: lead }, ...content],
    ...(timestamp === undefined ? {} : { timestamp }),
  });
}
