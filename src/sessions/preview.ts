import type { Entry } from "../core/entries.ts";
import { stringifyJson } from "../core/json.ts";
import type { AssistantBlock, Content, Message } from "../core/messages.ts";
import { cutText } from "../core/text.ts";

const longest = 200;

/** An entry in one line for lists and trees. */
export function previewOf(entry: Entry, most = longest): string {
  return inOneLine(textOfEntry(entry, most), most);
}

/** The same for a message alone. */
export function previewOfMessage(message: { role: string }): string {
  return inOneLine(messageText(message as Message, longest), longest);
}

function inOneLine(text: string, most: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > most ? `${cutText(line, most - 1)}…` : line;
}

function textOfEntry(entry: Entry, most: number): string {
  switch (entry.type) {
    case "message":
      return messageText(entry.message, most);
    case "custom_message":
      return contentText(entry.content, most);
    case "model_change":
      return `${entry.provider}/${entry.modelId}`;
    case "thinking_level_change":
      return entry.thinkingLevel;
    case "compaction":
    case "branch_summary":
      return entry.summary;
    case "custom":
      return entry.customType;
    case "label":
      return entry.label ? `"${entry.label}" on ${entry.targetId}` : `taken from ${entry.targetId}`;
    case "session_info":
      return entry.name ?? "(no name)";
    case "leaf":
    case "context_edit":
      return entry.targetId ?? "(before the root)";
    case "usage":
      return entry.model ?? "";
    case "active_tools_change":
      return entry.activeToolNames.join(", ");
    case "opaque":
      return entry.problem ?? "";
  }
}

function messageText(message: Message, most: number): string {
  switch (message.role) {
    case "bashExecution":
      return `$ ${message.command}`;
    case "toolResult":
      return `${message.toolName ?? "tool"}${message.isError === true ? " failed" : ""}: ${contentText(message.content, most)}`;
    case "user":
    case "assistant":
    case "custom":
    case "system":
      return contentText(message.content, most);
    default:
      return "";
  }
}

/** Blocks joined, each cut before it is joined: a tool result may hold megabytes. */
function contentText(content: Content | readonly AssistantBlock[], most: number): string {
  if (typeof content === "string") return cutText(content, 4 * most);
  return content
    .slice(0, 20)
    .map((block) => cutText(blockText(block), 4 * most))
    .filter((text) => text !== "")
    .join(" ");
}

/** A block in one line; thinking is not shown. */
function blockText(block: AssistantBlock | Exclude<Content, string>[number]): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "toolCall":
      return `→ ${block.name}(${cutText(stringifyJson(block.arguments ?? null), longest)})`;
    case "image":
      return `[image ${block.mimeType}]`;
    case "thinking":
      return "";
    default:
      return `[${(block as { type: string }).type}]`;
  }
}
