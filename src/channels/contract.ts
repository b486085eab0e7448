import { SkeinError } from "../core/errors.ts";
import type { DeliveryTarget } from "../runs/contract.ts";

/** Delivers messages to people and programs outside Skein. */
export interface Channel {
  readonly id: string;
  /** Throws if the message was not delivered. The caller then retries with the same idempotency key. */
  deliver(message: OutboundMessage, target: DeliveryTarget): Promise<Receipt>;
  /** Returns the ID of the new thread. Absent for channels without threads. */
  openThread?(target: DeliveryTarget, title: string): Promise<string>;
}

/** An outgoing message. */
export interface OutboundMessage {
  readonly text: string;
  readonly idempotencyKey: string;
  readonly sessionKey: string;
  readonly runId: string | null;
  readonly userId: string | null;
  readonly agentId: string;
  readonly signal: AbortSignal;
}

/** A channel's JSON confirmation that a message was delivered. */
export interface Receipt {
  readonly messageId?: string;
  readonly [field: string]: unknown;
}

/** An incoming message. */
export interface InboundMessage {
  readonly channel: string;
  readonly accountId?: string;
  /** The channel's message ID. A second message with the same ID is a duplicate. */
  readonly messageId: string;
  /** The sender. */
  readonly peer: string;
  /** The sender's display name. In groups, it is stored with the message so that the model sees it. */
  readonly peerName?: string;
  readonly group?: string;
  readonly threadId?: string;
  readonly text: string;
  readonly images?: readonly { readonly data: string; readonly mimeType: string }[];
  /** Defaults to the channel's `agent`, and then to the default agent. */
  readonly agentId?: string;
}

/** Returns a channel's `openThread`, or `null` if there is no such channel or it has no threads. */
export function threadOpener(
  channels: ReadonlyMap<string, Channel>,
  id: string,
): NonNullable<Channel["openThread"]> | null {
  const channel = channels.get(id);
  return channel?.openThread === undefined ? null : channel.openThread.bind(channel);
}

interface RetryAdvice {
  /** `true` if a retry would fail in the same way. */
  readonly permanent: boolean;
  /** The delay before a retry that the receiver requested, or `null` if it did not request one. */
  readonly retryAfterMs: number | null;
}

export type DeliveryError = SkeinError<"delivery_failed"> & RetryAdvice;

/** Creates the error for a channel that could not deliver a message. */
export function deliveryError(
  channel: string,
  problem: string,
  { permanent = false, retryAfterMs = null }: Partial<RetryAdvice> = {},
): DeliveryError {
  const advice = permanent
    ? 'Fix the problem at the receiver, then retry with "skein outbox retry"'
    : "Skein retries the delivery for a day";
  const error = new SkeinError("delivery_failed", { channel, problem, advice });
  return Object.assign(error, { permanent, retryAfterMs });
}
