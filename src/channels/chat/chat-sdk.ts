/**
 * The parts of the Chat SDK that Skein uses. The types are structural, because the packages are optional and are
 * located at run time.
 */

export interface ChatAuthor {
  readonly userId: string;
  readonly userName: string;
  readonly fullName: string;
  readonly isBot: boolean | "unknown";
}

export interface ChatAttachment {
  readonly type: "image" | "file" | "video" | "audio";
  readonly name?: string;
  readonly mimeType?: string;
  readonly size?: number;
  fetchData?(): Promise<ArrayBuffer | Uint8Array>;
}

export interface ChatMessage {
  readonly id: string;
  readonly threadId: string;
  readonly text: string;
  readonly author: ChatAuthor;
  readonly attachments: readonly ChatAttachment[];
}

/** What an adapter posts: Markdown, or a card with buttons. */
export type Postable = { readonly markdown: string } | CardElement;

export interface CardElement {
  readonly type: "card";
}

export interface ChatAdapter {
  readonly name: string;
  readonly userName: string;
  readonly botUserId?: string;
  channelIdFromThreadId(threadId: string): string;
  isDM?(threadId: string): boolean;
  openDM?(userId: string): Promise<string>;
  parseMessage(raw: unknown): ChatMessage;
  postMessage(
    threadId: string,
    message: Postable,
  ): Promise<{ readonly id: string; readonly threadId?: string }>;
  editMessage(threadId: string, messageId: string, message: Postable): Promise<unknown>;
  deleteMessage(threadId: string, messageId: string): Promise<void>;
  /**
   * Receives messages over a connection to the platform for a limited time. `waitUntil` receives a promise that settles
   * when the connection ends.
   */
  startGatewayListener?(
    options: { readonly waitUntil: (task: Promise<unknown>) => void },
    durationMs: number,
    signal: AbortSignal,
  ): Promise<Response>;
}

export interface ChatThread {
  readonly id: string;
  readonly isDM: boolean;
  subscribe(): Promise<void>;
  postEphemeral(
    user: string,
    message: { readonly markdown: string },
    options: { readonly fallbackToDM: boolean },
  ): Promise<unknown>;
}

/** A button that was pressed. */
export interface ChatAction {
  readonly actionId: string;
  readonly value?: string;
  readonly user: ChatAuthor;
  readonly threadId: string;
  readonly thread: ChatThread | null;
}

export interface ChatCommand {
  readonly raw: unknown;
}

export interface WebhookOptions {
  readonly waitUntil: (task: Promise<unknown>) => void;
  readonly propagateHandlerErrors: boolean;
  readonly deduplicate: boolean;
}

type MessageHandler = (thread: ChatThread, message: ChatMessage) => Promise<void>;

export interface Chat {
  readonly webhooks: Readonly<
    Record<string, (request: Request, options: WebhookOptions) => Promise<Response>>
  >;
  initialize(): Promise<void>;
  shutdown(): Promise<void>;
  thread(threadId: string): ChatThread;
  onDirectMessage(handler: MessageHandler): void;
  onNewMention(handler: MessageHandler): void;
  onSubscribedMessage(handler: MessageHandler): void;
  onNewMessage(pattern: RegExp, handler: MessageHandler): void;
  onSlashCommand(handler: (event: ChatCommand) => Promise<void>): void;
  onAction(actionIds: readonly string[], handler: (event: ChatAction) => Promise<void>): void;
}

export interface ChatLogger {
  child(prefix: string): ChatLogger;
  debug(message: string, ...args: unknown[]): void;
  info(message: string, ...args: unknown[]): void;
  warn(message: string, ...args: unknown[]): void;
  error(message: string, ...args: unknown[]): void;
}

/** The packages of one channel. */
export interface ChatPackages {
  createChat(config: Readonly<Record<string, unknown>>): Chat;
  createAdapter(config: Readonly<Record<string, unknown>>): ChatAdapter;
  /** Creates a card with a text, and with buttons if there are any. */
  createCard(text: string, buttons: readonly CardButton[]): CardElement;
}

export interface CardButton {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly style: "primary" | "danger";
}
