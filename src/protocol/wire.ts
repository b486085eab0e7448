/** Constants shared by both ends of a socket. Schemas are kept elsewhere so that clients can load this file alone. */

export const protocolVersion = 1;

export const wireLimits = {
  /** Applies to a frame and to the body of an `/rpc` request. */
  frameBytes: 25 * 1024 * 1024,
  connectBytes: 64 * 1024,
  connectMs: 10_000,
  requestsPerSecond: 200,
  socketsPerToken: 64,
  /** The number of recent events that can be replayed. */
  eventsKept: 10_000,
} as const;

/** The reasons why a socket is closed. `reconnects` is `true` if reconnecting later might help. */
export const closeCodes = {
  goingAway: { code: 1001, reason: "the gateway is stopping", reconnects: true },
  // Not caused by clients: the bytes were garbled in transit.
  notFrames: { code: 1002, reason: "the data is not valid WebSocket framing", reconnects: true },
  notUtf8: { code: 1007, reason: "a text message is not valid UTF-8", reconnects: true },
  tooManyFragments: { code: 1008, reason: "a message had too many fragments", reconnects: false },
  tooLarge: { code: 1009, reason: "a frame was too large", reconnects: false },
  internal: { code: 1011, reason: "an internal error occurred in the gateway", reconnects: true },
  badFrame: { code: 4400, reason: "a frame could not be parsed", reconnects: false },
  unauthorized: { code: 4401, reason: "the token is invalid", reconnects: false },
  revoked: { code: 4403, reason: "the token has expired or been revoked", reconnects: false },
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

/** Events that can be dropped for a slow reader. The reader then receives a `gap`. */
export const lossyEvents: readonly string[] = ["run.delta"];
