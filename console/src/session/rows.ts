import type { TranscriptEntry } from "../live/transcript.ts";

/** What a transcript shows for an entry: one row each, so that a row and an entry are the same thing to link to. */
export type RowKind =
  | "user"
  | "agent"
  | "tool"
  | "session"
  | "system"
  | "compaction"
  | "summary"
  | "note"
  | "change";

type MessageOf = Extract<TranscriptEntry, { type: "message" }>["message"];
type Provenance = NonNullable<Extract<MessageOf, { role: "user" }>["provenance"]>;

/** Entries that only keep the session's books are not rows. */
export function isShown(entry: TranscriptEntry): boolean {
  if (
    entry.type === "label" ||
    entry.type === "session_info" ||
    entry.type === "leaf" ||
    entry.type === "usage"
  )
    return false;
  return entry.type !== "custom" || !entry.customType.startsWith("skein.");
}

export function rowKind(entry: TranscriptEntry): RowKind {
  switch (entry.type) {
    case "message":
      return messageKind(entry.message);
    case "compaction":
      return "compaction";
    case "branch_summary":
      return "summary";
    case "custom_message":
    case "custom":
      return "note";
    default:
      return "change";
  }
}

function messageKind(message: MessageOf): RowKind {
  switch (message.role) {
    case "user":
      return kindOfSender(message.provenance);
    case "assistant":
      return message.provenance === undefined ? "agent" : "note";
    case "toolResult":
    case "bashExecution":
      return "tool";
    default:
      return "system";
  }
}

function kindOfSender(provenance: Provenance | undefined): RowKind {
  if (provenance?.kind === "inter_session") return "session";
  return provenance?.kind === "internal_system" ? "system" : "user";
}

/** Who said it, for the head of a row. */
export function senderName(entry: TranscriptEntry, agentId: string): string {
  if (entry.type !== "message") return "";
  const { message } = entry;
  if (message.role === "assistant") return message.provenance === undefined ? agentId : "Note";
  if (message.role === "toolResult") return message.toolName ?? "tool";
  if (message.role === "bashExecution") return "shell";
  if (message.role !== "user") return message.role;
  const { kind, sourcePeerName, sourcePeer, sourceSessionKey, sourceChannel, sourceTool } =
    message.provenance ?? {};
  if (kind === "inter_session") return sourceSessionKey ?? "another session";
  if (kind === "internal_system") return sourceTool ?? "Skein";
  return sourcePeerName ?? sourcePeer ?? sourceChannel ?? "You";
}

/** The text of a row, for the find bar and for copying. */
export function rowText(entry: TranscriptEntry): string {
  switch (entry.type) {
    case "message":
      return messageText(entry.message);
    case "compaction":
    case "branch_summary":
      return entry.summary;
    case "custom_message":
      return contentText(entry.content);
    case "model_change":
      return `${entry.provider}/${entry.modelId}`;
    case "thinking_level_change":
      return entry.thinkingLevel;
    default:
      return "";
  }
}

function messageText(message: MessageOf): string {
  if (message.role === "bashExecution") return `${message.command}\n${message.output}`;
  if (message.role !== "assistant") return contentText(message.content);
  return message.content
    .map((block) => {
      if (block.type === "text") return block.text;
      if (block.type === "thinking") return block.thinking;
      return block.type === "toolCall" ? `${block.name} ${JSON.stringify(block.arguments)}` : "";
    })
    .join("\n");
}

export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block: { type?: string; text?: string }) => (block.type === "text" ? (block.text ?? "") : ""))
    .filter((text) => text !== "")
    .join("\n");
}

/** The texts that a message from another session quotes between fences; `null` if it quotes none. */
export function quotedText(text: string): string | null {
  const found = [...text.matchAll(/^(?<fence>`{3,}|~{3,})\n(?<quoted>[\s\S]*?)\n\k<fence>$/gm)];
  if (found.length === 0) return null;
  return found.map(({ groups }) => groups?.quoted ?? "").join("\n\n");
}
