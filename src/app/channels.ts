import { createCliChannel, createConsoleChannel } from "../channels/cli.ts";
import type { Channel } from "../channels/contract.ts";
import { createWebhook } from "../channels/webhook.ts";
import type { AcceptInbound } from "../channels/webhook-inbound.ts";
import { SkeinError } from "../core/errors.ts";
import type { App } from "../sessions/app.ts";
import { receive } from "../sessions/receive.ts";

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
  return Object.entries(config.channels).flatMap(([id, { type, secret, url }]): Channel[] => {
    switch (type) {
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

function toStdout(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
