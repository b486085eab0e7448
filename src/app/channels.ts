import { createCliChannel, createConsoleChannel } from "../channels/cli.ts";
import type { Channel } from "../channels/contract.ts";
import { createWebhook } from "../channels/webhook.ts";
import type { AcceptInbound } from "../channels/webhook-inbound.ts";
import type { Config } from "../config/sections/all.ts";
import type { Clock } from "../core/clock.ts";
import { SkeinError } from "../core/errors.ts";

export interface ChannelSources {
  readonly config: Pick<Config, "channels">;
  readonly given: readonly Channel[];
  readonly accept: AcceptInbound;
  readonly clock: Clock;
  readonly report: (error: unknown) => void;
}

/** The channels by their names: those of the configuration, those that the code brings, and the two that are always there. */
export function openChannels(sources: ChannelSources): ReadonlyMap<string, Channel> {
  const channels = new Map<string, Channel>();
  for (const channel of [...configured(sources), ...sources.given]) {
    if (channels.has(channel.id)) {
      const problem = `Two channels are named "${channel.id}"`;
      throw new SkeinError("invalid_arguments", { problem, advice: "Give one of them another name" });
    }
    channels.set(channel.id, channel);
  }
  for (const channel of [createCliChannel(toStdout), createConsoleChannel()])
    if (!channels.has(channel.id)) channels.set(channel.id, channel);
  return channels;
}

function configured({ config, accept, clock, report }: ChannelSources): Channel[] {
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
