import type { Channel } from "../channels/contract.ts";
import { SkeinError } from "../core/errors.ts";

/** The channels by their names. */
export function openChannels(given: readonly Channel[]): ReadonlyMap<string, Channel> {
  const channels = new Map<string, Channel>();
  for (const channel of given) {
    if (channels.has(channel.id)) {
      const problem = `Two channels are named "${channel.id}"`;
      throw new SkeinError("invalid_arguments", { problem, advice: "Give one of them another name" });
    }
    channels.set(channel.id, channel);
  }
  return channels;
}
