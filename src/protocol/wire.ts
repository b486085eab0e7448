/** Constants that both ends of a socket share. This file has no schemas, so that clients can load it alone. */

export const protocolVersion = 1;

export const wireLimits = {
  /** Applies to a frame and to a body for `/rpc`. */
  frameBytes: 25 * 1024 * 1024,
  connectBytes: 64 * 1024,
  connectMs: 10_000,
  requestsPerSecond: 200,
  socketsPerToken: 64,
  /** The number of recent events that can be replayed. */
  eventsKept: 10_000,
} as const;

/** Why a socket is closed. `reconnects` is `true` if reconnecting later may help. */
export const closeCodes = {
  goingAway: { code: 1001, reason: "the gateway stops", reconnects: true },
  // Not caused by clients: the bytes were garbled in transit.
  notFrames: { code: 1002, reason: "the data is not valid WebSocket framing", reconnects: true },
  notUtf8: { code: 1007, reason: "a text is not UTF-8", reconnects: true },
  tooManyFragments: { code: 1008, reason: "a message came in too many fragments", reconnects: false },
  tooLarge: { code: 1009, reason: "a frame was too large", reconnects: false },
  internal: { code: 1011, reason: "something went wrong inside the gateway", reconnects: true },
  badFrame: { code: 4400, reason: "a frame could not be read", reconnects: false },
  unauthorized: { code: 4401, reason: "the token is not valid", reconnects: false },
  revoked: { code: 4403, reason: "the token has expired or was revoked", reconnects: false },
  noCommonProtocol: { code: 4406, reason: "no common protocol version", reconnects: false },
  connectTooLate: { code: 4408, reason: "connect did not arrive in time", reconnects: true },
  messageTooLate: { code: 4409, reason: "a message did not arrive in time", reconnects: true },
  tooManySockets: { code: 4429, reason: "too many sockets for this token", reconnects: true },
  tooMuchUnfinished: { code: 4431, reason: "too many unfinished messages for this token", reconnects: true },
  slowReader: { code: 4430, reason: "events were not read in time", reconnects: true },
} as const satisfies Record<
  string,
  { readonly code: number; readonly reason: string; readonly reconnects: boolean }
>;
export type CloseReason = keyof typeof closeCodes;

/** Events that may be dropped for a slow reader, which then gets a `gap`. */
export const lossyEvents: readonly string[] = ["run.delta"];
