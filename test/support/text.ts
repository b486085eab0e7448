import type { ContextMessage, Entry } from "../../src/index.ts";
import { SessionTree, xray } from "../../src/index.ts";

export type UserMessage = Extract<ContextMessage, { role: "user" }>;
export type AssistantMessage = Extract<ContextMessage, { role: "assistant" }>;
export type ToolResultMessage = Extract<ContextMessage, { role: "toolResult" }>;
export type Content = UserMessage["content"];
export type AssistantBlock = AssistantMessage["content"][number];
export type ToolCallBlock = Extract<AssistantBlock, { type: "toolCall" }>;

/** Returns the text in a message's content, without its other blocks. */
export function textOf(
  content: Content | AssistantMessage["content"] | readonly { readonly type: string }[],
): string {
  if (typeof content === "string") return content;
  return content
    .flatMap((block) => ("text" in block && block.type === "text" ? [String(block.text)] : []))
    .join("\n");
}

/** Returns the token count of user messages with these texts, as counted for a context. */
export async function estimateTokens(texts: readonly string[]): Promise<number> {
  const counts = texts.map(async (content) => {
    const tree = SessionTree.create({ cwd: "/" });
    tree.append({ type: "message", message: { role: "user", content } });
    return (await xray(tree, "local/any")).tokens.total;
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

export function lineOf(entry: Entry): string {
  if (entry.type !== "message") return entry.type;
  const { message } = entry;
  const text =
    "content" in message
      ? typeof message.content === "string"
        ? message.content
        : message.content
            .map((block) => {
              if (block.type === "text") return block.text;
              return block.type === "toolCall"
                ? `→ ${block.name} ${JSON.stringify(block.arguments)}`
                : block.type;
            })
            .join(" | ")
      : "";
  if (message.role === "toolResult")
    return `result ${message.toolName}${message.isError ? " failed" : ""}: ${text}`;
  if (message.role === "assistant") return `assistant ${message.stopReason}: ${text}`;
  return `${message.role}: ${text}`;
}
