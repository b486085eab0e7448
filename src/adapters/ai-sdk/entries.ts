import type { Entry, MessageEntry } from "../../core/entries.ts";
import { isRecord } from "../../core/is-record.ts";
import type { AssistantMessage, ToolResultMessage, UserMessage } from "../../core/messages.ts";
import { callsOf } from "../../sessions/append.ts";
import type { SessionHandle } from "../../sessions/session-handle.ts";

/** An entry that a person sees as a message, or as a part of one. */
export type ConversationEntry = MessageEntry & {
  readonly message: UserMessage | AssistantMessage | ToolResultMessage;
};

export function isConversation(entry: Entry): entry is ConversationEntry {
  return entry.type === "message" && ["user", "assistant", "toolResult"].includes(entry.message.role);
}

/** Whether the branch ends with a message that still requires an answer. */
export function awaitsAnswer(branch: readonly Entry[]): boolean {
  const last = branch.findLast(isConversation)?.message;
  if (last?.role === "assistant") return callsOf(last).length > 0;
  return last !== undefined;
}

/** Data that the adapter stores with a message for the browser. No provider receives it. */
export interface Mark {
  /** The ID under which the browser knows the message. */
  readonly messageId?: string;
  readonly metadata?: unknown;
  /** The original parts of a user message, if some of them are not sent to any model. */
  readonly parts?: readonly unknown[];
}

export function markOf({ message }: ConversationEntry): Mark {
  const own = message.skein?.providerMetadata;
  const ofGroup = message.role === "toolResult" ? message.skein?.groupMetadata : undefined;
  const mark = ofGroup?.skein ?? own?.skein;
  return isRecord(mark) ? (mark as Mark) : {};
}

/** The entries of one message in a browser: a user message, or all steps of an answer. */
export interface MessageGroup {
  readonly role: "user" | "assistant";
  readonly entries: readonly [ConversationEntry, ...ConversationEntry[]];
}

/** Groups the entries of a branch. An answer ends at the next user message, or where another answer begins. */
export function groupEntries(branch: readonly Entry[]): MessageGroup[] {
  const groups: { role: "user" | "assistant"; entries: [ConversationEntry, ...ConversationEntry[]] }[] = [];
  for (const entry of branch) {
    if (!isConversation(entry)) continue;
    const last = groups.at(-1);
    const { role } = entry.message;
    const isContinued =
      last?.role === "assistant" && role !== "user" && (role === "toolResult" || continues(last, entry));
    if (isContinued) last.entries.push(entry);
    else groups.push({ role: role === "user" ? "user" : "assistant", entries: [entry] });
  }
  return groups;
}

/**
 * Whether an entry belongs to an answer. A turn that continues after a crash keeps the ID that its first entry stores.
 */
function continues(answer: MessageGroup, entry: ConversationEntry): boolean {
  const { messageId } = markOf(entry);
  return messageId === undefined
    ? markOf(answer.entries[0]).messageId === undefined
    : messageId === messageIdOf(answer);
}

export function messageIdOf({ entries: [first] }: MessageGroup): string {
  return markOf(first).messageId ?? first.id;
}

const pageSize = 500;

/** Returns all entries of the active branch, or of the whole session, oldest first. Empty if there is no session. */
export async function readEntries(session: SessionHandle, along: "branch" | "all"): Promise<Entry[]> {
  if ((await session.record()) === null) return [];
  const pages: (readonly Entry[])[] = [];
  for (let before: string | undefined; ; ) {
    const page = await session.entries({
      along,
      limit: pageSize,
      ...(before === undefined ? {} : { before }),
    });
    pages.unshift(page.entries);
    before = page.entries[0]?.id;
    if (!page.hasEarlier || before === undefined) return pages.flat();
  }
}
