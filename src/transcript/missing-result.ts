import type { ToolCallBlock, ToolResultMessage } from "../core/messages.ts";

const missingResultText =
  "[skein] No result was recorded for this call: the run was interrupted before it ended.";

/** What stands for a result that was never recorded, in a session and in a request alike. */
export function missingResult({ id, name }: ToolCallBlock) {
  const content = [{ type: "text" as const, text: missingResultText }];
  return {
    role: "toolResult",
    toolCallId: id,
    toolName: name,
    content,
    isError: true,
  } as const satisfies ToolResultMessage;
}
