import type { ChatState } from "ai";
import { AbstractChat, DefaultChatTransport } from "ai";
import type { Chat, ChatMessage } from "../../src/entry-ai-sdk.ts";

/** What `useChat` consists of, without React: the AI SDK's chat with a plain state. */
export class BrowserChat extends AbstractChat<ChatMessage> {
  constructor(id: string, messages: ChatMessage[], fetch: typeof globalThis.fetch) {
    const api = "http://localhost/api/chat";
    super({ id, state: new PlainState(messages), transport: new DefaultChatTransport({ api, fetch }) });
  }

  /** The messages, one short line each. */
  get lines(): string[] {
    return this.messages.map(lineOfMessage);
  }
}

class PlainState implements ChatState<ChatMessage> {
  status: ChatState<ChatMessage>["status"] = "ready";
  error: Error | undefined;
  messages: ChatMessage[];

  constructor(messages: ChatMessage[]) {
    this.messages = messages;
  }

  pushMessage = (message: ChatMessage) => {
    this.messages = [...this.messages, message];
  };

  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };

  replaceMessage = (index: number, message: ChatMessage) => {
    this.messages = this.messages.with(index, structuredClone(message));
  };

  snapshot = <T>(value: T): T => structuredClone(value);
}

export function lineOfMessage({ role, parts }: ChatMessage): string {
  const texts = parts.flatMap((part) => {
    if (part.type === "text") return [part.text];
    if (part.type === "file") return [`[${part.mediaType}]`];
    return part.type.startsWith("tool-") && "state" in part ? [`(${part.type.slice(5)} ${part.state})`] : [];
  });
  return `${role}: ${texts.join(" ")}`;
}

/** Sends a browser's requests to the route, as a web server does. */
export function fetchFrom(chat: Chat): typeof globalThis.fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    return chat[request.method as keyof Chat](request);
  };
}
