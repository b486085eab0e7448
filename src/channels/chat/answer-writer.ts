import { thrownText } from "../../core/text.ts";
import { deliveryError } from "../contract.ts";
import type { ChatAdapter } from "./chat-sdk.ts";
import type { ChatState } from "./chat-state.ts";
import { errorAdvice } from "./platform-errors.ts";
import { splitText } from "./split-text.ts";

/** The messages that show an answer. Stored, so that after a restart the answer continues in the same messages. */
interface PostedAnswer {
  readonly threadId: string;
  /** In the order of the answer's parts. */
  readonly messageIds: readonly string[];
  /** The number of parts whose text is final. */
  readonly final: number;
  readonly isComplete: boolean;
}

interface AnswerText {
  /** Identifies the answer across attempts and processes. */
  readonly key: string;
  readonly threadId: string;
  readonly text: string;
}

export interface WriterOptions {
  readonly channel: string;
  readonly state: ChatState;
  readonly maxChars: number;
}

const keptMs = 30 * 86_400_000;
const lockMs = 20_000;

/**
 * Posts answers and edits them while they grow. Only one process writes an answer at a time. Final text is never
 * replaced by an earlier version.
 */
export class AnswerWriter {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /**
   * Shows an incomplete answer. `shown` contains the text that each part showed last. Returns the texts that are shown
   * now, or `null` if the answer must no longer be changed.
   */
  async show(
    adapter: ChatAdapter,
    answer: AnswerText,
    shown: readonly string[],
  ): Promise<readonly string[] | null> {
    const { state, maxChars } = this.#options;
    const lock = await state.acquireLock(`skein:answer:${answer.key}`, lockMs);
    if (lock === null) return shown;
    try {
      const posted = await this.#posted(answer);
      if (posted.final > 0 || posted.isComplete) return null;
      const parts = splitText(answer.text, maxChars);
      const messageIds = [...posted.messageIds];
      for (const [index, part] of parts.entries()) {
        const messageId = messageIds[index];
        if (messageId !== undefined && shown[index] === part) continue;
        messageIds[index] = await this.#write(adapter, answer.threadId, messageId, part);
        if (messageIds[index] !== messageId) await this.#save(answer.key, { ...posted, messageIds });
      }
      return parts;
    } finally {
      await state.releaseLock(lock);
    }
  }

  /**
   * Delivers a complete answer: edits the messages that show it, and posts the rest. A repeated call changes nothing.
   * Returns the ID of the last message.
   */
  async complete(adapter: ChatAdapter, answer: AnswerText, signal: AbortSignal): Promise<string> {
    const { state, maxChars, channel } = this.#options;
    const lock = await state.acquireLock(`skein:answer:${answer.key}`, lockMs);
    if (lock === null)
      throw deliveryError(channel, "another process is writing this answer", { retryAfterMs: 1000 });
    try {
      let posted = await this.#posted(answer);
      if (posted.isComplete) return posted.messageIds.at(-1) ?? "";
      const parts = splitText(answer.text, maxChars);
      for (const [index, part] of parts.entries()) {
        if (index < posted.final) continue;
        signal.throwIfAborted();
        const messageIds = [...posted.messageIds];
        messageIds[index] = await this.#write(adapter, posted.threadId, messageIds[index], part);
        posted = { ...posted, messageIds, final: index + 1 };
        await this.#save(answer.key, posted);
        if (index < parts.length - 1) await state.extendLock(lock, lockMs);
      }
      // The text that was shown before might have been longer.
      for (const messageId of posted.messageIds.slice(parts.length))
        await adapter.deleteMessage(posted.threadId, messageId).catch(() => undefined);
      const messageIds = posted.messageIds.slice(0, parts.length);
      await this.#save(answer.key, { ...posted, messageIds, isComplete: true });
      return messageIds.at(-1) ?? "";
    } finally {
      await state.releaseLock(lock);
    }
  }

  /** Whether part of an incomplete answer is shown. */
  async isShown(key: string): Promise<boolean> {
    const posted = await this.#options.state.get<PostedAnswer>(stateKey(key));
    return posted !== null && !posted.isComplete && posted.messageIds.length > 0;
  }

  async #posted({ key, threadId }: AnswerText): Promise<PostedAnswer> {
    const posted = await this.#options.state.get<PostedAnswer>(stateKey(key));
    return posted ?? { threadId, messageIds: [], final: 0, isComplete: false };
  }

  async #save(key: string, posted: PostedAnswer): Promise<void> {
    await this.#options.state.set(stateKey(key), posted, keptMs);
  }

  /** Returns the ID of the message. A message that a person has deleted is posted again. */
  async #write(
    adapter: ChatAdapter,
    threadId: string,
    messageId: string | undefined,
    markdown: string,
  ): Promise<string> {
    if (messageId !== undefined) {
      try {
        await adapter.editMessage(threadId, messageId, { markdown });
        return messageId;
      } catch (error) {
        if (/not modified/i.test(thrownText(error))) return messageId;
        if (!errorAdvice(error).isMessageGone) throw error;
      }
    }
    return (await adapter.postMessage(threadId, { markdown })).id;
  }
}

function stateKey(key: string): string {
  return `skein:posted:${key}`;
}
