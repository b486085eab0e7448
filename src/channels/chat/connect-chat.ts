import type { ChatAdapterName } from "../../config/sections/chat-adapters.ts";
import { parseAdapterSettings, platformOf } from "../../config/sections/chat-adapters.ts";
import { SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";
import { isSubthread } from "./address.ts";
import { approveAction, denyAction } from "./approval-cards.ts";
import type {
  Chat,
  ChatAction,
  ChatAdapter,
  ChatLogger,
  ChatMessage,
  ChatPackages,
  ChatThread,
} from "./chat-sdk.ts";
import type { ChatState } from "./chat-state.ts";

interface ConnectOptions {
  readonly channel: string;
  readonly settings: {
    readonly adapter: ChatAdapterName;
    readonly settings: Readonly<Record<string, string>>;
    readonly groups: "mentions" | "all";
  };
  readonly state: ChatState;
  receive(adapter: ChatAdapter, thread: ChatThread, message: ChatMessage): Promise<void>;
  press(adapter: ChatAdapter, action: ChatAction): Promise<void>;
  log(level: "debug" | "warn" | "error", text: string): void;
}

/**
 * The setting that contains the token of the bot's own account. If the platform does not accept the token, the
 * account's ID is unknown, and the bot would answer itself and miss mentions.
 */
const ownAccountTokens: Partial<Record<ChatAdapterName, string>> = { slack: "botToken", github: "token" };

/** Connects to a platform. Throws `unavailable` if the platform does not accept the token. */
export async function connectChat(
  packages: ChatPackages,
  options: ConnectOptions,
): Promise<{ readonly chat: Chat; readonly adapter: ChatAdapter }> {
  const { channel, settings, state } = options;
  const platform = platformOf(settings.adapter);
  const logger = createLogger(options);
  const given = parseAdapterSettings(settings.adapter, settings.settings);
  const adapter = packages.createAdapter({ ...platform.fixed, ...given, logger });
  const chat = packages.createChat({
    userName: "skein",
    adapters: { [settings.adapter]: adapter },
    state,
    logger,
    // The session's queue decides what happens to messages that arrive during a turn.
    concurrency: "concurrent",
    // The session already contains the history.
    history: { thread: { maxMessages: 0 } },
  });
  registerHandlers(chat, adapter, options);
  await chat.initialize();
  const token = ownAccountTokens[settings.adapter];
  if (token !== undefined && settings.settings[token] !== undefined && adapter.botUserId === undefined) {
    await chat.shutdown();
    const problem = `${platform.title} did not accept channels.${channel}.settings.${token}, or could not be reached`;
    throw new SkeinError("unavailable", { problem, advice: `Check channels.${channel}.settings.${token}` });
  }
  return { chat, adapter };
}

function registerHandlers(chat: Chat, adapter: ChatAdapter, options: ConnectOptions): void {
  const { settings } = options;
  const receive = (thread: ChatThread, message: ChatMessage) => options.receive(adapter, thread, message);
  chat.onDirectMessage(receive);
  chat.onSubscribedMessage(receive);
  chat.onNewMention(async (thread, message) => {
    if (message.author.isBot !== true && isSubthread(adapter, thread.id)) await thread.subscribe();
    await receive(thread, message);
  });
  if (settings.groups === "all") chat.onNewMessage(/^/, receive);
  // Telegram's commands are messages. Other platforms' commands are not part of a conversation.
  chat.onSlashCommand(async ({ raw }) => {
    if (settings.adapter !== "telegram") return;
    const message = adapter.parseMessage(raw);
    await receive(chat.thread(message.threadId), message);
  });
  chat.onAction([approveAction, denyAction], (action) => options.press(adapter, action));
}

function createLogger({ channel, log }: ConnectOptions): ChatLogger {
  const write = (level: "debug" | "warn" | "error") => (text: string, detail?: unknown) => {
    const { error } = (typeof detail === "object" ? (detail ?? {}) : {}) as { readonly error?: unknown };
    log(level, `channel ${channel}: ${text}${error === undefined ? "" : `: ${thrownText(error)}`}`);
  };
  const logger: ChatLogger = {
    child: () => logger,
    debug: () => undefined,
    info: write("debug"),
    warn: write("warn"),
    error: write("error"),
  };
  return logger;
}
