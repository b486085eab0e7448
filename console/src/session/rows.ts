import { readAnnouncement } from "skein/client";
import type { TranscriptEntry } from "../live/transcript.ts";
import type { SessionPlace } from "../paths.ts";
import { userParam } from "../paths.ts";
import { oneLine } from "../ui/plain-text.ts";

/** The row that a transcript shows for an entry. Each entry has one row, so a link to an entry is a link to a row. */
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
export type Provenance = NonNullable<Extract<MessageOf, { role: "user" }>["provenance"]>;

/** Bookkeeping entries are not shown as rows. */
export function isShown(entry: TranscriptEntry): boolean {
  if (
    entry.type === "label" ||
    entry.type === "session_info" ||
    entry.type === "leaf" ||
    entry.type === "usage"
  )
    return false;
  return entry.type !== "custom" || !entry.customType.startsWith("skein.") || interruptedText(entry) !== "";
}

/** Returns the text of an answer that was interrupted when the gateway stopped. The run has since answered again. */
export function interruptedText(entry: TranscriptEntry): string {
  if (entry.type !== "custom" || entry.customType !== "skein.partial") return "";
  const { text } = (entry.data ?? {}) as { readonly text?: unknown };
  return typeof text === "string" ? text : "";
}

export function rowKind(entry: TranscriptEntry): RowKind {
  switch (entry.type) {
    case "message":
      return messageKind(entry);
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

function messageKind(entry: Extract<TranscriptEntry, { type: "message" }>): RowKind {
  const { message } = entry;
  switch (message.role) {
    case "user":
      return kindOfSender(message.provenance);
    case "assistant":
      if (controlWord(rowText(entry)) !== null) return "system";
      return message.provenance === undefined ? "agent" : "note";
    case "toolResult":
    case "bashExecution":
      return "tool";
    default:
      return "system";
  }
}

const controlWords: readonly string[] = ["REPLY_SKIP", "ANNOUNCE_SKIP"];

/**
 * Returns the control word if the text consists of nothing else. Agents use control words to end an exchange or to stay
 * silent. Control words are not meant for people.
 */
export function controlWord(text: string): string | null {
  const word = text.trim();
  return controlWords.includes(word) ? word : null;
}

/** Whether a text that is still being written could become a control word. */
export function mayBecomeControlWord(text: string): boolean {
  const begun = text.trim();
  return begun !== "" && controlWords.some((word) => word.startsWith(begun));
}

/** Returns the kind of row for input from this source. */
export function kindOfSender(
  provenance: { readonly kind?: string | undefined } | undefined,
): "user" | "session" | "system" {
  if (provenance?.kind === "inter_session") return "session";
  return provenance?.kind === "internal_system" ? "system" : "user";
}

/** The session that a message came from, or `null` if it did not come from a session. */
export function sourceOf(
  provenance: Provenance | undefined,
  { userId }: Pick<SessionPlace, "userId">,
): SessionPlace | null {
  if (provenance?.kind !== "inter_session" || provenance.sourceSessionKey === undefined) return null;
  return { key: provenance.sourceSessionKey, ...userParam({ userId }) };
}

/** Returns the author for a row's header. In another user's session, the author of the user's messages is not “You”. */
export function senderName(entry: TranscriptEntry, agentId: string, userId?: string): string {
  if (entry.type === "custom_message") return isSkeins(entry) ? "Skein" : "";
  if (entry.type !== "message") return "";
  const { message } = entry;
  if (message.role === "custom" && isSkeins(message)) return "Skein";
  if (message.role === "assistant") return message.provenance === undefined ? agentId : "Note";
  if (message.role === "toolResult") return message.toolName ?? "tool";
  if (message.role === "bashExecution") return "shell";
  if (message.role !== "user") return message.role;
  const { kind, sourcePeerName, sourcePeer, sourceSessionKey, sourceChannel, sourceTool } =
    message.provenance ?? {};
  if (kind === "inter_session") return sourceSessionKey ?? "another session";
  if (kind === "internal_system") return sourceTool === "cron" ? "Schedule" : (sourceTool ?? "Skein");
  return sourcePeerName ?? sourcePeer ?? sourceChannel ?? userId ?? "You";
}

/** Whether an entry was written by Skein itself rather than by a program that uses Skein. */
function isSkeins({ customType }: { readonly customType?: unknown }): boolean {
  return typeof customType === "string" && customType.startsWith("skein.");
}

const roleWords: Readonly<Record<string, string>> = {
  user: "message",
  assistant: "answer",
  toolResult: "tool result",
  bashExecution: "shell",
  compaction: "summary",
  branch_summary: "summary",
  model_change: "model",
  thinking_level_change: "thinking",
  custom_message: "note",
};

/** Returns the display name of an entry, based on its message's role or its type. */
export function roleWord(role: string): string {
  return roleWords[role] ?? oneLine(role, 20);
}

/** Returns a row's text, for the find bar and for copying. Empty if the entry cannot be read. */
export function rowText(entry: TranscriptEntry): string {
  try {
    return readText(entry);
  } catch {
    return "";
  }
}

function readText(entry: TranscriptEntry): string {
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
    case "custom":
      return interruptedText(entry);
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
    .map((block?: { type?: string; text?: string }) => (block?.type === "text" ? (block.text ?? "") : ""))
    .filter((text) => text !== "")
    .join("\n");
}

/** Large content that is stored separately from its entry. */
export interface BlobRef {
  readonly sha256: string;
  readonly bytes: number;
  readonly mimeType: string;
}
/** A text. If it has a blob, this is only its beginning and end. */
export interface StoredPart {
  readonly text: string;
  readonly blob: BlobRef | null;
}
export type Picture = { readonly url: string } | { readonly blob: BlobRef };
export interface ContentParts {
  readonly texts: readonly StoredPart[];
  readonly pictures: readonly Picture[];
  /** Blocks that are neither text nor an image. */
  readonly unreadable: readonly unknown[];
}

interface Block {
  readonly type?: string;
  readonly text?: string;
  readonly data?: string;
  readonly mimeType?: string;
  readonly skein?: { readonly blob?: BlobRef & { readonly was?: string } };
}

const shownImages = /^image\/(?:png|jpeg|gif|webp)$/;

/**
 * Returns a message's texts and images. A stored image that is not PNG, JPEG, GIF or WebP stays as the text that names
 * it.
 */
export function contentParts(content: unknown): ContentParts {
  if (typeof content === "string")
    return { texts: [{ text: content, blob: null }], pictures: [], unreadable: [] };
  const texts: StoredPart[] = [];
  const pictures: Picture[] = [];
  const unreadable: unknown[] = [];
  for (const block of Array.isArray(content) ? (content as readonly Block[]) : [content as Block]) {
    const { type, text = "", data = "", mimeType = "" } = block;
    const blob = block.skein?.blob;
    if (type === "image" && shownImages.test(mimeType) && data !== "")
      pictures.push({ url: `data:${mimeType};base64,${data}` });
    else if (blob?.was === "image" && shownImages.test(blob.mimeType)) pictures.push({ blob });
    else if (text !== "") texts.push({ text, blob: blob?.was === "text" ? blob : null });
    else if (type !== "text") unreadable.push(block);
  }
  return { texts, pictures, unreadable };
}

/** Returns a message's text without images. Large images are text blocks that name a blob. */
export function writtenText(content: unknown): string {
  if (!Array.isArray(content)) return contentText(content);
  return contentText((content as readonly Block[]).filter(({ skein }) => skein?.blob === undefined));
}

/** Returns what another session wrote, or the whole text if the message quotes nothing. */
export function quotedText(text: string): string {
  return readAnnouncement(text)?.reply ?? text;
}

/** Whether a message reports the end of another session's turn, such as the result of a helper. */
export function isResult(provenance: Provenance | undefined): boolean {
  return provenance?.kind === "inter_session" && provenance.deliveryId?.startsWith("announce:") === true;
}

const lowerCase = new WeakMap<TranscriptEntry, string>();

/** Returns a row's text in lowercase. It is cached, because the find bar compares every row on every keystroke. */
export function searchText(entry: TranscriptEntry): string {
  const known = lowerCase.get(entry);
  if (known !== undefined) return known;
  const text = rowText(entry).toLowerCase();
  lowerCase.set(entry, text);
  return text;
}
