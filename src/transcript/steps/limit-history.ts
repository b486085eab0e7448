import { own } from "../../core/json.ts";
import type { ParsedKey } from "../../core/keys.ts";
import { parseKey } from "../../core/keys.ts";
import type { StepResult, TranscriptMessage } from "../contract.ts";
import type { StepOptions } from "../derive.ts";
import { isInserted } from "../derive.ts";

/**
 * Keeps the last `historyLimit` user turns and everything after them. Consecutive user messages are one turn. The
 * last turn is always kept.
 */
export function limitHistory(
  messages: readonly TranscriptMessage[],
  { historyLimit: limit, record }: Pick<StepOptions, "historyLimit" | "record">,
): StepResult {
  if (limit === undefined || Number.isNaN(limit)) return { messages, changes: [] };
  const turns = userTurns(messages);
  const kept = Math.max(1, Math.floor(limit));
  const gone = turns.length - kept;
  const from = gone > 0 ? turns[gone] : undefined;
  if (from === undefined) return { messages, changes: [] };
  const note = `Omitted: ${formatCount(from, "older message")} with ${formatCount(gone, "user turn")}. Kept: the last ${kept}.`;
  return { messages: messages.slice(from), changes: [record("history_limited", note)] };
}

function formatCount(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** Returns the index of each user turn's first message. Messages that a step inserted are ignored. */
function userTurns(messages: readonly TranscriptMessage[]): number[] {
  const isTurn = (message: TranscriptMessage | undefined) => message?.role === "user" && !isInserted(message);
  const turns: number[] = [];
  for (const [index, message] of messages.entries()) {
    if (isTurn(message) && !isTurn(messages[index - 1])) turns.push(index);
  }
  return turns;
}

/** The number of user turns that a model sees. `null` or absent means no limit. */
interface ChannelLimits {
  /** For groups and channels. */
  readonly historyLimit?: number | null;
  /** For direct sessions. */
  readonly dmHistoryLimit?: number | null;
  /** For direct sessions with one user. */
  readonly dms?: { readonly [user: string]: { readonly historyLimit?: number | null } };
}

/** The channel and peer of the session's user, if the key does not contain them. */
interface SessionOrigin {
  readonly channel?: string | undefined;
  /** The peer's ID on the channel. */
  readonly to?: string | undefined;
}

/**
 * Returns the history limit for a session. A thread inherits the limit of its peer or group. A direct session whose key
 * contains no channel has the limit of the channel that its user last wrote on. Other sessions have no limit.
 */
export function resolveHistoryLimit(
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
  return resolveHistoryLimit(parseKey(key), channels, {
    channel: delivery?.channel ?? meta.channel,
    to: delivery?.to,
  });
}
