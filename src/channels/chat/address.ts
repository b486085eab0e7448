import { createHash } from "node:crypto";
import { readKey } from "../../core/keys.ts";
import type { DeliveryTarget } from "../../runs/contract.ts";
import type { InboundMessage, OutboundMessage } from "../contract.ts";
import type { ChatAdapter, ChatMessage } from "./chat-sdk.ts";
import type { ChatState } from "./chat-state.ts";

type Address = Pick<InboundMessage, "peer" | "peerName" | "group" | "threadId">;

const longestId = 200;

/** Returns where a message was sent, in the terms that keys and delivery targets use. */
export function addressOf(
  adapter: ChatAdapter,
  threadId: string,
  { author }: Pick<ChatMessage, "author">,
): Address {
  const isDirect = adapter.isDM?.(threadId) === true;
  const chatId = adapter.channelIdFromThreadId(threadId);
  const thread = threadPart(threadId, chatId);
  return {
    peer: shortId(author.userId),
    peerName: author.fullName || author.userName,
    ...(isDirect ? {} : { group: shortId(withoutPrefix(adapter, chatId)) }),
    // Google Chat adds the thread `dm` to every direct conversation.
    ...(thread === "" || (isDirect && thread === "dm")
      ? {}
      : { threadId: shortId(withoutPrefix(adapter, thread)) }),
  };
}

/** Whether a thread is part of a larger conversation. Joining such a thread does not mean joining the conversation. */
export function isSubthread(adapter: ChatAdapter, threadId: string): boolean {
  return threadPart(threadId, adapter.channelIdFromThreadId(threadId)) !== "";
}

function threadPart(threadId: string, chatId: string): string {
  if (threadId === chatId) return "";
  return threadId.startsWith(`${chatId}:`) ? threadId.slice(chatId.length + 1) : threadId;
}

function withoutPrefix({ name }: ChatAdapter, id: string): string {
  return id.startsWith(`${name}:`) ? id.slice(name.length + 1) : id;
}

function shortId(id: string): string {
  return id.length <= longestId ? id : `sha256-${createHash("sha256").update(id).digest("hex")}`;
}

const rememberedMs = 400 * 86_400_000;

/**
 * The conversations that messages came from, by delivery target. A target does not always contain what the platform
 * needs to address the conversation: a direct conversation can have a separate ID, and long IDs are shortened.
 */
export class AddressBook {
  readonly #state: ChatState;

  constructor(state: ChatState) {
    this.#state = state;
  }

  async remember({ group, peer, threadId }: Address, chatThreadId: string): Promise<void> {
    const key = bookKey({ to: group ?? peer, threadId });
    const known = await this.#state.get(key);
    if (known !== chatThreadId) await this.#state.set(key, chatThreadId, rememberedMs);
  }

  /** Returns the ID of the platform's thread for a target, even if no message has come from the target. */
  async find(
    adapter: ChatAdapter,
    { to = "", threadId }: DeliveryTarget,
    { sessionKey }: Pick<OutboundMessage, "sessionKey">,
  ): Promise<string> {
    const known = await this.#state.get<string>(bookKey({ to, threadId }));
    if (known !== null) return known;
    const key = readKey(sessionKey);
    const isDirect = !("problem" in key) && key.form === "direct";
    if (isDirect && threadId === undefined && adapter.openDM !== undefined) return adapter.openDM(to);
    return [adapter.name, to, ...(threadId === undefined ? [] : [threadId])].join(":");
  }
}

function bookKey({ to, threadId }: { readonly to: string; readonly threadId?: string | undefined }): string {
  return `skein:address:${JSON.stringify([to, threadId ?? null])}`;
}
