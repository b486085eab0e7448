import type { ParsedKey } from "../core/keys.ts";
import { parseKey } from "../core/keys.ts";
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

/** Where a session's person writes: what its key does not say. */
export interface SessionOrigin {
  readonly channel?: string | undefined;
  /** The peer's ID on the channel. */
  readonly to?: string | undefined;
}

/**
 * How many user turns of a session are kept. A thread has the limit of the session that it belongs to. A direct session
 * whose key names no channel has the limit of the channel that its person wrote on last. Other sessions have none.
 */
export function historyLimitFor(
  key: ParsedKey,
  channels: { readonly [channel: string]: ChannelLimits },
  origin: SessionOrigin = {},
): number | undefined {
  if (key.form === "group") return own(channels, key.channel)?.historyLimit ?? undefined;
  if (key.form !== "direct") return undefined;
  const channel = own(channels, key.channel ?? origin.channel ?? "");
  const dms = channel?.dms ?? {};
  const byPeer = own(dms, key.peer)?.historyLimit ?? own(dms, origin.to ?? "")?.historyLimit;
  return byPeer ?? channel?.dmHistoryLimit ?? undefined;
}

/** The same of a session as the store has it. */
export function sessionHistoryLimit(
  {
    key,
    meta,
  }: {
    readonly key: string;
    readonly meta: { readonly channel?: string; readonly delivery?: SessionOrigin };
  },
  channels: { readonly [channel: string]: ChannelLimits },
): number | undefined {
  const { delivery } = meta;
  return historyLimitFor(parseKey(key), channels, {
    channel: delivery?.channel ?? meta.channel,
    to: delivery?.to,
  });
}
