import type { ParsedKey } from "../core/keys.ts";
import { own } from "../core/own.ts";

/** How many user turns of its sessions a channel lets a model see; `null` and absence are no limit. */
export interface ChannelLimits {
  /** Of groups and channels. */
  readonly historyLimit?: number | null;
  /** Of direct sessions. */
  readonly dmHistoryLimit?: number | null;
  /** Of direct sessions with one user. */
  readonly dms?: { readonly [user: string]: { readonly historyLimit?: number | null } };
}

/**
 * How many user turns of a session are kept. A thread has the limit of what it hangs on; a session that is on no channel
 * has none.
 */
export function historyLimitFor(
  key: ParsedKey,
  channels: { readonly [channel: string]: ChannelLimits },
): number | undefined {
  if (key.form === "group") return own(channels, key.channel)?.historyLimit ?? undefined;
  if (key.form !== "direct" || key.channel === undefined) return undefined;
  const channel = own(channels, key.channel);
  return own(channel?.dms ?? {}, key.peer)?.historyLimit ?? channel?.dmHistoryLimit ?? undefined;
}
