import type { ChatChannel, ChatChannelOptions } from "../channels/chat/chat-channel.ts";
import { createChatChannel } from "../channels/chat/chat-channel.ts";
import { createCliChannel, createConsoleChannel } from "../channels/cli.ts";
import type { Channel } from "../channels/contract.ts";
import { createWebhook } from "../channels/webhook.ts";
import type { AcceptInbound } from "../channels/webhook-inbound.ts";
import { SkeinError } from "../core/errors.ts";
import { findAnswerPlace, findApprovalPlace } from "../sessions/answer-place.ts";
import type { App } from "../sessions/app.ts";
import { receive } from "../sessions/receive.ts";
import { packageFoldersOf } from "./check-chat-packages.ts";

/** Returns all channels by name: the configured ones, those passed in code, and the two built-in ones. */
export function openChannels(app: App, given: readonly Channel[]): ReadonlyMap<string, Channel> {
  const channels = new Map<string, Channel>();
  for (const channel of [...configured(app), ...given]) {
    if (channels.has(channel.id)) {
      const problem = `Two channels are named "${channel.id}"`;
      throw new SkeinError("invalid_arguments", { problem, advice: "Rename one of them" });
    }
    channels.set(channel.id, channel);
  }
  for (const channel of [createCliChannel(toStdout), createConsoleChannel()])
    if (!channels.has(channel.id)) channels.set(channel.id, channel);
  return channels;
}

function configured(app: App): Channel[] {
  const { config, clock, report } = app;
  const accept: AcceptInbound = (message, key) => receive(app, message, key);
  return Object.entries(config.channels).flatMap(([id, settings]): Channel[] => {
    const { type, secret, url, adapter } = settings;
    switch (type) {
      case "chat-sdk":
        return adapter === null ? [] : [openChat(app, id, { ...settings, adapter }, accept)];
      case "webhook":
        return [createWebhook({ id, secret: secret ?? "", url, accept, clock, report })];
      case "cli":
        return [createCliChannel(toStdout, id)];
      case "console":
        return [createConsoleChannel(id)];
      default:
        return [];
    }
  });
}

function openChat(
  app: App,
  id: string,
  settings: ChatChannelOptions["settings"],
  accept: AcceptInbound,
): ChatChannel {
  const { clock, loaded, log, redactor, bus, events, report } = app;
  const asIs = { push: (text: string) => text, end: () => "" };
  return createChatChannel({
    ...{ id, settings, clock, accept, report },
    folders: packageFoldersOf(loaded),
    engine: app.store.work.engine,
    answerPlace: (runId) => findAnswerPlace(app, id, runId),
    approvals: {
      placeOf: (runId) => findApprovalPlace(app, id, runId),
      approval: (approvalId) => app.runs.approval(approvalId),
      openApprovals: (runId) => app.runs.approvals({ runId, open: true }),
      resolve: (approvalId, answer, by) => app.runs.resolveApproval(approvalId, answer, by),
      redact: (text) => redactor.redact(text).text,
    },
    redact: () => (app.config.redaction.onWrite ? redactor.stream() : asIs),
    watchHere: (listener) => bus.subscribe(listener),
    watchAll: (listener) => events.subscribe(listener),
    log: (level, text) => log.write(level, redactor.redact(text).text),
  });
}

/** Starts receiving messages that platforms do not send over HTTP. */
export function startChannels(channels: Iterable<Channel>): void {
  for (const channel of channels) if (isChat(channel)) channel.listen();
}

/**
 * Closes the channels that the configuration opened. A platform's error does not prevent the other channels from
 * closing.
 */
export async function closeChannels(channels: Iterable<Channel>): Promise<void> {
  await Promise.allSettled([...channels].map((channel) => (isChat(channel) ? channel.close() : null)));
}

function isChat(channel: Channel): channel is ChatChannel {
  return "isChatSdk" in channel;
}

function toStdout(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
