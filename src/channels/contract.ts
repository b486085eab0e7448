import type { DeliveryTarget } from "../runs/contract.ts";

/** A way to people and programs outside. */
export interface Channel {
  readonly id: string;
  /** Throws when it could not; whoever asked tries again, under the same idempotency key. */
  deliver(message: OutboundMessage, target: DeliveryTarget): Promise<Receipt>;
  /** Where the channel has threads. Gives the thread's id. */
  openThread?(target: DeliveryTarget, title: string): Promise<string>;
}

/** A message that leaves. */
export interface OutboundMessage {
  readonly text: string;
  readonly idempotencyKey: string;
  readonly sessionKey: string;
  readonly runId: string | null;
  readonly userId: string | null;
  readonly agentId: string;
  readonly signal: AbortSignal;
}

/** What a channel says of a message that it took. JSON. */
export interface Receipt {
  readonly messageId?: string;
  readonly [field: string]: unknown;
}

/** A message from outside, as a channel hands it in. */
export interface InboundMessage {
  readonly channel: string;
  readonly accountId?: string;
  /** Of the channel: the same one again is the same message. */
  readonly messageId: string;
  /** Who says it. */
  readonly peer: string;
  /** The display name of the peer. In groups it is stored with the message, and the model reads it. */
  readonly peerName?: string;
  readonly group?: string;
  readonly threadId?: string;
  readonly text: string;
  readonly images?: readonly { readonly data: string; readonly mimeType: string }[];
  /** Which agent is meant; left out: the default one. */
  readonly agentId?: string;
}
