import type { DeliveryTarget } from "../runs/contract.ts";
import type { Channel } from "./contract.ts";

/** How a channel opens threads; `null`: there is no such channel, or it has none. */
export function threadOpener(
  channels: ReadonlyMap<string, Channel>,
  id: string,
): ((target: DeliveryTarget, title: string) => Promise<string>) | null {
  const channel = channels.get(id);
  return channel?.openThread === undefined ? null : channel.openThread.bind(channel);
}
