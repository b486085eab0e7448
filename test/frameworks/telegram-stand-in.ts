import type { PlatformCall, PlatformRequest } from "./platform-stand-in.ts";
import { PlatformStandIn } from "./platform-stand-in.ts";

const botToken = "7000000001:stand-in-0123456789";
const secretToken = "telegram-secret-0123456789";
const bot = { id: 7_000_000_001, is_bot: true, first_name: "Skein", username: "skein_bot" };

interface TelegramMessage {
  readonly text?: string;
  readonly from?: { readonly id: number; readonly name: string };
  /** Negative for a group. */
  readonly chat?: number;
  readonly topic?: number;
  readonly messageId?: number;
  readonly files?: object;
}

/** Telegram's Bot API without rich messages, and the updates that Telegram sends. */
export class TelegramStandIn extends PlatformStandIn {
  readonly files = new Map<string, Buffer>();
  #messages = 5000;
  #updates = 0;

  get settings() {
    return { botToken, secretToken, apiUrl: this.url };
  }

  protected answer({ path, body }: PlatformRequest) {
    const file = path.startsWith(`/file/bot${botToken}/`)
      ? this.files.get(path.split("/").at(-1) ?? "")
      : undefined;
    if (file !== undefined) return { body: file };
    const [, method] = path.startsWith(`/bot${botToken}/`) ? path.slice(1).split("/") : [];
    if (method === undefined) return failure(401, "Unauthorized");
    if (method === "sendRichMessage") return failure(404, "Not Found");
    const params = JSON.parse(body.toString() || "{}") as PlatformCall["params"];
    return this.record(method, params, () => this.#result(method, params));
  }

  #result(method: string, params: PlatformCall["params"]) {
    const { chat_id, message_thread_id, text } = params;
    if ("rich_message" in params) return failure(400, "Bad Request: rich message is unsupported");
    const message = (message_id: unknown) => ({
      ...{ message_id, date: 1_800_000_000, text, from: bot, chat: { id: Number(chat_id), type: "private" } },
      ...(message_thread_id === undefined ? {} : { message_thread_id }),
    });
    switch (method) {
      case "getMe":
        return { body: { ok: true, result: bot } };
      case "sendMessage":
        this.#messages += 1;
        return { body: { ok: true, result: message(this.#messages) } };
      case "editMessageText":
        return { body: { ok: true, result: message(params.message_id) } };
      case "getFile":
        return {
          body: { ok: true, result: { file_id: params.file_id, file_path: `files/${params.file_id}` } },
        };
      default:
        return { body: { ok: true, result: true } };
    }
  }

  /** The next update with a message. */
  update({ text, from = { id: 5, name: "Ann" }, chat = from.id, topic, messageId, files }: TelegramMessage) {
    this.#updates += 1;
    const mention = text?.match(/@skein_bot/);
    return {
      update_id: this.#updates,
      message: {
        message_id: messageId ?? this.#updates,
        date: 1_800_000_000,
        from: { id: from.id, is_bot: false, first_name: from.name },
        chat: { id: chat, type: chat < 0 ? "supergroup" : "private" },
        ...(text === undefined ? {} : { text }),
        ...(mention?.index === undefined
          ? {}
          : { entities: [{ type: "mention", offset: mention.index, length: mention[0].length }] }),
        ...(topic === undefined ? {} : { message_thread_id: topic, is_topic_message: true }),
        ...files,
      },
    };
  }

  /** What Telegram sends when a person presses a button below a message. */
  press(
    call: PlatformCall,
    messageId: number,
    label: string,
    from: { readonly id: number; readonly name: string },
  ) {
    this.#updates += 1;
    const { inline_keyboard } = call.params.reply_markup as { inline_keyboard: readonly TelegramButton[][] };
    const button = inline_keyboard.flat().find(({ text }) => text === label);
    const chat = { id: Number(call.params.chat_id), type: "private" };
    return {
      update_id: this.#updates,
      callback_query: {
        id: String(this.#updates),
        from: { id: from.id, is_bot: false, first_name: from.name },
        message: { message_id: messageId, date: 1_800_000_000, chat },
        data: button?.callback_data,
      },
    };
  }

  send(url: string, update: object, secret = secretToken): Promise<Response> {
    return fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": secret },
      body: JSON.stringify(update),
    });
  }
}

interface TelegramButton {
  readonly text: string;
  readonly callback_data: string;
}

function failure(status: number, description: string) {
  return { status, body: { ok: false, error_code: status, description } };
}
