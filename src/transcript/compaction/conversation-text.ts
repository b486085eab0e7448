import type { ContextMessage } from "../../core/context.ts";
import { stringifyJson } from "../../core/json.ts";
import type { AssistantMessage, Content, ImageBlock, TextBlock, UserMessage } from "../../core/messages.ts";
import { escapeToLine } from "../../core/text.ts";
import { escapeTags, modelMessage } from "../model-message.ts";
import { truncateText } from "./chunks.ts";

/** The maximum number of characters quoted from a result or a call's arguments. Messages are included whole. */
export const maxQuotedCharacters = 2000;
const maxNameCharacters = 80;

/** Returns a message as plain text for a summarizer, or `null` if the model does not see it. */
export function conversationText(message: ContextMessage): string | null {
  if (modelMessage(message) === null) return null;
  switch (message.role) {
    case "user":
      return formatSpeech(senderOf(message), contentText(message.content));
    case "assistant":
      return assistantText(message);
    case "toolResult": {
      const name = toLabel(message.toolName ?? "a tool");
      const text = truncateText(contentText(message.content), maxQuotedCharacters);
      return formatSpeech(message.isError === true ? `Result of ${name}, failed` : `Result of ${name}`, text);
    }
    case "custom":
      return formatSpeech(noteFrom(message.customType), contentText(message.content));
    case "bashExecution": {
      const code = message.exitCode === undefined ? "" : `, exit code ${message.exitCode}`;
      return formatSpeech(
        `Shell command run by the user${code}`,
        `${message.command}\n${truncateText(message.output, maxQuotedCharacters)}`,
      );
    }
    case "branchSummary":
      return formatSpeech("Summary of an abandoned branch", message.summary);
    case "compactionSummary":
      return formatSpeech("Summary of what came before", message.summary);
    default:
      return null;
  }
}

/** Returns the speaker of a user message. Text from another session or the system is not attributed to the user. */
export function senderOf({ provenance }: Pick<UserMessage, "provenance">): string {
  if (provenance?.kind === "internal_system") return "Message of the system";
  if (provenance?.kind !== "inter_session") {
    const peer = provenance?.sourcePeerName ?? provenance?.sourcePeer;
    return peer === undefined ? "User" : `User ${toLabel(peer)}`;
  }
  const key = toLabel(provenance.sourceSessionKey ?? "");
  return key === "" ? "Message from another session" : `Message from another session ${key}`;
}

export function noteFrom(customType: string): string {
  return `Note from ${toLabel(customType)}`;
}

/** Returns the speaker of an assistant message. A note from another session is not attributed to the assistant. */
function writerOf(message: AssistantMessage): string {
  return message.provenance?.kind === "inter_session" ? senderOf(message) : "Assistant";
}

/** Returns an answer's text and calls. Thinking is omitted because the answer contains its outcome. */
function assistantText(message: AssistantMessage): string | null {
  const texts = message.content.filter((block) => block.type === "text").map((block) => block.text);
  const calls = message.content
    .filter((block) => block.type === "toolCall")
    .map(({ name, arguments: given }) => `${toLabel(name)}(${argumentsText(given)})`);
  const how =
    message.stopReason === "error" ? ", failed" : message.stopReason === "aborted" ? ", aborted" : "";
  const parts = [
    ...(texts.some((text) => text.trim() !== "")
      ? [formatSpeech(`${writerOf(message)}${how}`, texts.join("\n"))]
      : []),
    ...(calls.length > 0 ? [formatSpeech("Assistant calls", calls.join("\n"))] : []),
  ];
  return parts.length === 0 ? null : parts.join("\n");
}

function argumentsText(given: unknown): string {
  return truncateText(stringifyJson(given ?? {}), maxQuotedCharacters);
}

/** Replaces images with a description because a summarizer reads only text. */
export function contentText(content: Content): string {
  if (typeof content === "string") return content;
  return content.map((block) => blockText(block)).join("\n");
}

function blockText(block: TextBlock | ImageBlock): string {
  if (block.type === "text") return block.text;
  if (block.type !== "image") return "[non-text content]";
  return `[image ${toLabel(block.mimeType)}, ${Math.floor((block.data.length * 3) / 4)} bytes]`;
}

function formatSpeech(who: string, text: string): string {
  return `[${who}]: ${escapeSpeakers(escapeTags(text.toWellFormed()))}`;
}

/** Returns a short name on one line that cannot close its bracket. */
function toLabel(name: string): string {
  return escapeTags(escapeToLine(truncateText(name, maxNameCharacters))).replaceAll("]", ")");
}

/** Prevents a line of text from imitating another speaker. */
function escapeSpeakers(text: string): string {
  return text.replace(/^([ \t]{0,8})\[(?=user|assistant|result|note|message|shell|summary)/gim, "$1\\[");
}
