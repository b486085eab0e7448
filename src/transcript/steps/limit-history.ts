import { own } from "../../core/json.ts";
import type { ParsedKey } from "../../core/keys.ts";
import { parseKey } from "../../core/keys.ts";
import type { StepResult, TranscriptMessage } from "../contract.ts";
import type { StepOptions } from "../derive.ts";
import { holdsResults, isInserted, isNote } from "../derive.ts";

/**
 * Keeps the last `historyLimit` user turns and everything after them. Consecutive user messages are one turn. The
 * last turn is always kept, including the messages that were steered into it.
 */
export function limitHistory(
  messages: readonly TranscriptMessage[],
  { historyLimit: limit, record }: Pick<StepOptions, "historyLimit" | "record">,
): StepResult {
  if (limit === undefined || Number.isNaN(limit)) return { messages, changes: [] };
  const turns = userTurns(messages);
  const gone = Math.min(turns.length - Math.max(1, Math.floor(limit)), lastTurn(messages, turns));
  const from = gone > 0 ? turns[gone] : undefined;
  if (from === undefined) return { messages, changes: [] };
  const note = `Omitted: ${formatCount(from, "older message")} with ${formatCount(gone, "user turn")}. Kept: the last ${turns.length - gone}.`;
  return { messages: messages.slice(from), changes: [record("history_limited", note)] };
}

function formatCount(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/**
 * Returns the index of each user turn's first message. Messages that a step inserted are ignored. Notes, such as the
 * one about invalid calls, belong to the turn that they are in.
 */
function userTurns(messages: readonly TranscriptMessage[]): number[] {
  const turns: number[] = [];
  let start: number | null = null;
  for (const [index, message] of messages.entries()) {
    if (message.role !== "user" || isInserted(message)) {
      start = null;
      continue;
    }
    start ??= index;
    if (turns.at(-1) !== start && !isNote(message)) turns.push(start);
  }
  return turns;
}

/**
 * Returns the position of the last turn in `turns`. A user message that follows a tool result, or that was merged with
 * one, continues a turn.
 */
function lastTurn(messages: readonly TranscriptMessage[], turns: readonly number[]): number {
  let last = Math.max(0, turns.length - 1);
  while (last > 0 && followsResult(messages, turns[last] as number)) last--;
  return last;
}

function followsResult(messages: readonly TranscriptMessage[], index: number): boolean {
  for (let at = index; at >= 0; at--) {
    const message = messages[at] as TranscriptMessage;
    if (holdsResults(message)) return true;
    if (at < index && !isInserted(message)) return false;
  }
  return false;
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
