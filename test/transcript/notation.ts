import type { Change, ContextMessage, PreparedTranscript } from "../../src/index.ts";
import type { AssistantBlock, Content } from "../support/text.ts";

/** Transcripts as text, one line per message, for people to review. */

export function lines(messages: readonly ContextMessage[], entryIds: readonly string[] = []): string {
  return messages.map((message, index) => `${(entryIds[index] ?? "").padEnd(4)}${line(message)}`).join("\n");
}

export function prepared({ messages, changes }: PreparedTranscript): string {
  const told = changes.map(changeLine);
  return [lines(messages), ...(told.length === 0 ? [] : ["    changes", ...told])].join("\n");
}

function changeLine({ entryId = "", step, kind, note }: Change): string {
  return `${entryId.padEnd(4)}  ${step} ${kind}: ${note}`;
}

function line(message: ContextMessage): string {
  const role = message.role.padEnd(11);
  switch (message.role) {
    case "user": {
      const from = message.provenance === undefined ? "" : `  (${message.provenance.kind})`;
      return `${role}${contentText(message.content)}${from}`;
    }
    case "assistant": {
      const by = message.model === undefined ? "" : `  (${message.provider}/${message.model})`;
      const end = message.stopReason === undefined ? "" : `  [${message.stopReason}]`;
      return `${role}${contentText(message.content)}${by}${end}`;
    }
    case "toolResult": {
      const name = `${message.toolCallId} ${message.toolName ?? "?"}${message.isError === true ? " failed" : ""}`;
      const details = message.details === undefined ? "" : `  details ${JSON.stringify(message.details)}`;
      return `${role}${name}: ${contentText(message.content)}${details}`;
    }
    case "compactionSummary":
    case "branchSummary":
      return `${role} ${quoted(message.summary)}`;
    default:
      return `${role}${JSON.stringify({ ...message, role: undefined, timestamp: undefined })}`;
  }
}

function contentText(content: Content | readonly AssistantBlock[]): string {
  if (typeof content === "string") return quoted(content);
  return content.length === 0 ? "(nothing)" : content.map(blockText).join(" + ");
}

function blockText(block: AssistantBlock | Exclude<Content, string>[number]): string {
  switch (block?.type) {
    case "text":
      return `${quoted(block.text)}${signed(block.textSignature)}`;
    case "thinking":
      return `thinking ${block.redacted === true ? "(redacted)" : quoted(block.thinking)}${signed(block.thinkingSignature)}`;
    case "toolCall":
      return `call ${block.id} ${block.name}(${JSON.stringify(block.arguments)})${signed(block.thoughtSignature)}`;
    case "image":
      return `image ${block.mimeType} of ${block.data.length}`;
    default:
      return JSON.stringify(block);
  }
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 90)}…${text.length}…${text.slice(-90)}` : text);
}

function signed(signature: string | undefined): string {
  return signature === undefined ? "" : ` signed ${signature}`;
}
