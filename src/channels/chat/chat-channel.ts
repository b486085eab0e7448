import type { RedactionStream } from "../../access/redaction/redactor.ts";
import type { ChatAdapterName } from "../../config/sections/chat-adapters.ts";
import { platformOf } from "../../config/sections/chat-adapters.ts";
import type { Clock } from "../../core/clock.ts";
import { KeyedMutex, later, sleep } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import type { SkeinEvent } from "../../core/events.ts";
import type { ScriptEngine } from "../../core/script.ts";
import type { DeliveryTarget } from "../../runs/contract.ts";
import type { OutboundMessage, Receipt } from "../contract.ts";
import type { Webhook } from "../webhook.ts";
import type { AcceptInbound } from "../webhook-inbound.ts";
import { inboundKey } from "../webhook-inbound.ts";
import { AddressBook, addressOf } from "./address.ts";
import { AnswerWriter } from "./answer-writer.ts";
import type { ApprovalPorts, OpenChat } from "./approval-cards.ts";
import { ApprovalCards } from "./approval-cards.ts";
import type { Chat, ChatAdapter, ChatMessage, ChatPackages, ChatThread } from "./chat-sdk.ts";
import { ChatState } from "./chat-state.ts";
import { answerWebhook } from "./chat-webhook.ts";
import { connectChat } from "./connect-chat.ts";
import type { AnswerPlace } from "./live-answers.ts";
import { LiveAnswers } from "./live-answers.ts";
import { loadPackages } from "./load-packages.ts";
import { errorAdvice, toDeliveryError } from "./platform-errors.ts";
import { readMessage } from "./read-message.ts";

export interface ChatChannelSettings {
  readonly adapter: ChatAdapterName;
  readonly settings: Readonly<Record<string, string>>;
  readonly groups: "mentions" | "all";
  readonly streaming: "edits" | "off";
  readonly editIntervalMs: number | null;
  readonly approvers: readonly string[];
}

export interface ChatChannelOptions {
  readonly id: string;
  readonly settings: ChatChannelSettings;
  /** The folders in which the packages are looked up. */
  readonly folders: readonly string[];
  readonly engine: Pick<ScriptEngine, "read" | "change">;
  readonly clock: Clock;
  readonly accept: AcceptInbound;
  readonly approvals: ApprovalPorts;
  /** Returns where a run's answer is delivered, or `null` if it is not delivered to this channel. */
  answerPlace(runId: string): Promise<AnswerPlace | null>;
  /** Masks secrets in an answer while it is being written, in the same way as in the complete answer. */
  redact(): RedactionStream;
  /** The events of runs in this process. */
  watchHere(listener: (event: SkeinEvent) => void): () => void;
  /** The events of all processes. */
  watchAll(listener: (event: SkeinEvent) => void): () => void;
  log(level: "debug" | "warn" | "error", text: string): void;
  report(error: unknown): void;
}

export interface ChatChannel extends Webhook {
  readonly isChatSdk: true;
  /** Receives messages that the platform does not send over HTTP, until the channel is closed. */
  listen(): void;
  close(): Promise<void>;
}

interface ConnectedChat extends OpenChat {
  readonly chat: Chat;
}

/**
 * How long one connection to a platform lasts. The next one follows after a pause, even if this one ended with an
 * error.
 */
const listenMs = 24 * 3_600_000;
const pauseMs = 5000;
/** After these delays, an approval can still be answered in the console. */
const retryDelaysMs = [500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 60_000, 60_000, 60_000];

/** Creates a channel to a chat platform. The Chat SDK is loaded, and the platform is called, on first use. */
export function createChatChannel(options: ChatChannelOptions): ChatChannel {
  return new SdkChannel(options);
}

class SdkChannel implements ChatChannel {
  readonly id: string;
  readonly isInboundOnly = false;
  readonly isChatSdk = true;
  readonly #options: ChatChannelOptions;
  readonly #state: ChatState;
  readonly #addresses: AddressBook;
  readonly #writer: AnswerWriter;
  readonly #live: LiveAnswers;
  readonly #cards: ApprovalCards;
  readonly #stops: (() => void)[];
  #connected: Promise<ConnectedChat> | null = null;
  readonly #closing = new AbortController();
  readonly #arrivals = new KeyedMutex();

  constructor(options: ChatChannelOptions) {
    const { id, settings, clock, report } = options;
    this.id = id;
    this.#options = options;
    const platform = platformOf(settings.adapter);
    this.#state = new ChatState(options.engine, clock, id);
    this.#addresses = new AddressBook(this.#state);
    this.#writer = new AnswerWriter({ channel: id, state: this.#state, maxChars: platform.maxChars });
    this.#cards = new ApprovalCards({
      ...options.approvals,
      ...{ channel: id, clock, state: this.#state, approvers: settings.approvers, report },
    });
    this.#live = new LiveAnswers({
      ...{ clock, report, after: later, intervalMs: settings.editIntervalMs ?? platform.editIntervalMs },
      find: (runId) => options.answerPlace(runId),
      redact: () => options.redact(),
      show: async (place, text, shown) => {
        const { adapter, threadOf } = await this.#connect();
        return this.#writer.show(
          adapter,
          { key: answerKey(place), threadId: await threadOf(place), text },
          shown,
        );
      },
      giveUp: (place, text, code) => this.#giveUp(place, text, code),
    });
    const canEdit = platform.editIntervalMs > 0 && settings.streaming === "edits";
    this.#stops = [
      options.watchHere((event) => {
        if (canEdit) this.#live.take(event);
        // A run that has lost its process continues here and does not request its approvals again.
        const hasAsked = event.type === "approval.requested" || event.type === "run.recovered";
        if (hasAsked && event.runId !== undefined) void this.#askApprovals(event.runId);
      }),
      options.watchAll((event) => {
        if (event.type === "approval.resolved")
          void this.#repeat(async () => {
            if (await this.#cards.isPosted(event.approvalId))
              await this.#cards.close(await this.#connect(), event);
          });
      }),
    ];
  }

  async handler(request: Request): Promise<Response> {
    const { adapter } = this.#options.settings;
    return answerWebhook(request, {
      state: this.#state,
      report: this.#options.report,
      ask: async (given, sdkOptions) => {
        const { chat } = await this.#connect();
        return (chat.webhooks[adapter] as NonNullable<Chat["webhooks"][string]>)(given, sdkOptions);
      },
    });
  }

  async deliver(message: OutboundMessage, target: DeliveryTarget): Promise<Receipt> {
    try {
      const { runId, sessionKey, idempotencyKey: key, text, signal } = message;
      if (runId !== null) await this.#live.stop(runId);
      const { adapter } = await this.#connect();
      const threadId = await this.#addresses.find(adapter, target, { sessionKey });
      const messageId = await this.#writer.complete(adapter, { key, threadId, text }, signal);
      return { messageId };
    } catch (error) {
      throw toDeliveryError(this.id, error);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const stop of this.#stops) stop();
    await this.#live.close();
    const connected = await this.#connected?.catch(() => null);
    await connected?.chat.shutdown();
  }

  listen(): void {
    if (platformOf(this.#options.settings.adapter).hasConnection === true) void this.#listen();
  }

  async #listen(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const tasks: Promise<unknown>[] = [];
      try {
        const { adapter } = await this.#connect();
        await adapter.startGatewayListener?.({ waitUntil: (task) => tasks.push(task) }, listenMs, signal);
        await Promise.all(tasks);
      } catch (error) {
        if (!signal.aborted) this.#options.report(error);
      }
      await sleep(pauseMs, signal).catch(() => undefined);
    }
  }

  /** Returns the connection, which is opened on first use. A failed attempt is repeated on the next use. */
  #connect(): Promise<ConnectedChat> {
    if (this.#closing.signal.aborted) {
      const problem = `Channel "${this.id}" was closed`;
      throw new SkeinError("unavailable", { problem, advice: "Open a new Skein with createSkein" });
    }
    const attempt = this.#connected ?? this.#open();
    this.#connected = attempt;
    attempt.catch(() => {
      if (this.#connected === attempt) this.#connected = null;
    });
    return attempt;
  }

  async #open(): Promise<ConnectedChat> {
    const { settings, folders, log } = this.#options;
    const packages = await loadPackages(this.id, platformOf(settings.adapter), folders);
    const { chat, adapter } = await connectChat(packages, {
      ...{ channel: this.id, settings, state: this.#state, log },
      receive: (given, thread, message) => this.#receive(given, thread, message),
      press: (given, action) => this.#cards.answer(this.#describe(packages, given), action),
    });
    return { chat, ...this.#describe(packages, adapter) };
  }

  #describe(packages: ChatPackages, adapter: ChatAdapter): OpenChat {
    return {
      ...{ packages, adapter },
      threadOf: ({ target, sessionKey }) => this.#addresses.find(adapter, target, { sessionKey }),
    };
  }

  /** Accepts a message. Messages from other bots are ignored, because two bots could answer each other forever. */
  async #receive(adapter: ChatAdapter, thread: ChatThread, message: ChatMessage): Promise<void> {
    if (message.author.isBot === true) return;
    // A message must not overtake an earlier one whose files are still being downloaded.
    await this.#arrivals.run(thread.id, () => this.#accept(adapter, thread, message));
  }

  async #accept(adapter: ChatAdapter, thread: ChatThread, message: ChatMessage): Promise<void> {
    const address = addressOf(adapter, thread.id, message);
    await this.#addresses.remember(address, thread.id);
    const content = await readMessage(adapter, message);
    const inbound = {
      channel: this.id,
      messageId: `${adapter.channelIdFromThreadId(thread.id)}/${message.id}`,
      ...address,
      ...content,
    };
    try {
      await this.#options.accept(inbound, inboundKey(inbound));
    } catch (error) {
      if (!(error instanceof SkeinError) || error.status >= 500) throw error;
      // The message was already accepted, and has since been edited or read differently.
      if (error.code === "idempotency_conflict") return;
      // If this error were thrown, the platform would send the same message again.
      const { report } = this.#options;
      report(error);
      const markdown = `I cannot answer this message. ${error.message}`;
      await adapter.postMessage(thread.id, { markdown }).catch(report);
    }
  }

  async #giveUp(place: AnswerPlace, text: string, code: string): Promise<void> {
    if (!(await this.#writer.isShown(answerKey(place)))) return;
    const { adapter, threadOf } = await this.#connect();
    const shown = `${text}\n\n_This answer was not completed (${code})._`.trim();
    const answer = { key: answerKey(place), threadId: await threadOf(place), text: shown };
    await this.#writer.show(adapter, answer, []);
  }

  #askApprovals(runId: string): Promise<void> {
    const { approvals } = this.#options;
    return this.#repeat(async () => {
      const place = await approvals.placeOf(runId);
      for (const approval of place === null ? [] : await approvals.openApprovals(runId))
        await this.#cards.ask(await this.#connect(), approval);
    });
  }

  /** Repeats an action that no caller waits for until it succeeds or another attempt would be useless. */
  async #repeat(act: () => Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    for (const delay of retryDelaysMs) {
      try {
        return await act();
      } catch (error) {
        if (signal.aborted) return;
        this.#options.report(error);
        const { isPermanent, retryAfterMs } = errorAdvice(error);
        if (isPermanent) return;
        await sleep(Math.max(delay, retryAfterMs ?? 0), signal).catch(() => undefined);
      }
    }
  }
}

/** The outbox uses the same key for a run's reply. */
function answerKey({ runId }: AnswerPlace): string {
  return `reply:${runId}`;
}
