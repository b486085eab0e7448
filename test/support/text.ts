import type { Entry, Message } from "../../src/index.ts";

type Content = Extract<Message, { role: "user" | "assistant" | "toolResult" }>["content"];

/** The text of a message's content, without its other blocks. */
export function textOf(content: Content | readonly { readonly type: string }[]): string {
  if (typeof content === "string") return content;
  return content
    .flatMap((block) => ("text" in block && block.type === "text" ? [String(block.text)] : []))
    .join("\n");
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
