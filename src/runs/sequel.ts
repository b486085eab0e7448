/** One side of an exchange between two sessions. */
export interface Party {
  readonly key: string;
  readonly sessionId: string;
  /** The channel that it is on; left out: none. */
  readonly channel?: string;
}

/**
 * What the end of a run sets off: in the transaction that ends it, by whichever process, so it is complete in itself. JSON.
 * Nothing is set off if a waiter gets the reply (`Awaiting`).
 */
export type Sequel = ReplySequel | PingPongSequel | ChildSequel;

/** Of a message from one session to another: the reply goes back. */
export interface ReplySequel extends ExchangeTerms {
  readonly type: "reply";
}

/** Of a turn of the exchange that follows; when it is over, both sides may announce what came of it. */
export interface PingPongSequel extends ExchangeTerms {
  readonly type: "ping_pong";
  /** From 1; odd ones are the asker's. */
  readonly turn: number;
  readonly firstReply: string;
  readonly latestReply: string;
}

export interface ExchangeTerms {
  readonly asker: Party;
  readonly target: Party;
  /** What was asked, 4,000 characters of it at the most. */
  readonly request: string;
  /** Turns of ping-pong at the most; 0: the asker only gets the reply. */
  readonly turns: number;
  /** The target's outside channel, for the announce step; left out: it has none. */
  readonly announceTo?: DeliveryTarget;
  /** Where the asker announces the outcome; left out: in its own session. */
  readonly deliverTo?: DeliveryTarget;
}

/** Of the first run of a spawned session: its end is announced to the session that spawned it. */
export interface ChildSequel {
  readonly type: "child";
  readonly parent: Party;
  readonly childKey: string;
  readonly label?: string;
  readonly task: string;
  /** That the spawn asked for, by which a repeated call is compared. */
  readonly model?: string;
  /** Where the parent's answer to the announcement goes. */
  readonly deliverTo?: DeliveryTarget;
}

/** Where a message goes on a channel. */
export interface DeliveryTarget {
  readonly channel: string;
  readonly to?: string;
  readonly accountId?: string;
  readonly threadId?: string;
}
