import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../../core/clock.ts";
import type { EventFilter } from "../../protocol/calls.ts";
import { wireLimits } from "../../protocol/frames.ts";
import type { Principal } from "../auth/principal.ts";
import type { NewToken, Tokens } from "../auth/tokens.ts";
import type { EventSelection } from "../events/event-selection.ts";
import type { EventHub } from "../events/subscriber.ts";
import type { Dispatch } from "../methods/dispatch.ts";

/** The address that a server listens on, and the names under which it can be reached. */
export interface ServerSettings {
  readonly host: string;
  /** 0 selects any free port. */
  readonly port: number;
  readonly isExposed: boolean;
  /** `false` if only probes and metrics are served. */
  readonly servesClients: boolean;
  readonly allowedHosts: readonly string[];
  readonly trustProxy: readonly string[];
  /** A prefix under which every path is also served, such as `/skein`. Empty if there is none. */
  readonly basePath: string;
  /** The folder of the built console. If `null`, a short text is served instead. */
  readonly consoleFolder: string | null;
}

/** The dependencies of a server. Members that a reload can change are functions. */
export interface ServerOptions {
  readonly version: string;
  readonly settings: ServerSettings;
  readonly dispatch: Dispatch;
  readonly hub: EventHub;
  readonly tokens: Tokens;
  readonly clock: Clock;
  /** Exchanges a link code for a token. Returns `null` if the code is not valid. */
  exchange(code: unknown): Promise<NewToken | null>;
  /** Returns the handler for a channel's signed messages, or `null` if there is no such channel. */
  webhook(channelId: string): ((request: Request) => Promise<Response>) | null;
  /** Handles an authenticated request for MCP over Streamable HTTP. */
  mcp(request: Request, principal: Principal): Promise<Response>;
  /** Resolves the filter for `sessions.subscribe` and `/events`. Throws the same errors as a handler. */
  wanted(filter: EventFilter, principal: Principal, userId: string | null): Promise<EventSelection>;
  metrics(): Promise<{ readonly contentType: string; readonly body: string } | null>;
  /** Returns the reasons why the gateway is not ready, one sentence each. The list is empty if it is ready. */
  problems(): Promise<readonly string[]>;
  log(level: "info" | "warn" | "error", message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** A server without a port. Another server passes requests to it. */
export interface MountedServer {
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Takes over the socket from an upgrade request. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  drain(graceMs: number): Promise<void>;
  close(): Promise<void>;
}

export interface Server {
  /** In the format that clients use: `http://127.0.0.1:18790`. */
  readonly url: string;
  /**
   * Stops accepting work. New requests receive `unavailable`, and idle sockets are closed. Resolves when all pending
   * requests have been answered, or after `graceMs`.
   */
  drain(graceMs: number): Promise<void>;
  /** Closes the port and every socket. */
  close(): Promise<void>;
}

/** Timeouts and limits for a server. Tests override them. */
export interface Tuning {
  readonly frameBytes: number;
  /** The maximum number of chunks per body. 25 MiB in that many chunks is 400 bytes each. */
  readonly bodyChunks: number;
  readonly connectBytes: number;
  readonly connectMs: number;
  /**
   * The maximum number of idle keep-alive connections. If there are more, the one that has been idle the longest is
   * closed.
   */
  readonly idleConnections: number;
  /** The maximum number of connections of all kinds. */
  readonly maxConnections: number;
  /** The maximum number of sockets that have not sent `connect`. If there are more, the oldest is closed. */
  readonly waitingSockets: number;
  readonly requestsPerSecond: number;
  /** The maximum number of open sockets and event streams per token. */
  readonly socketsPerToken: number;
  readonly requestsPerSocket: number;
  /** The maximum number of concurrent HTTP requests per token. */
  readonly requestsPerToken: number;
  /** Memory for the bodies of pending requests: per token, for all tokens, and for all requests without a token. */
  readonly bodyBytesPerToken: number;
  readonly bodyBytes: number;
  readonly unsignedBytes: number;
  readonly subscriptionsPerSocket: number;
  /**
   * Limits both the bytes in a socket's pending requests and the bytes in the responses that its client has not read.
   */
  readonly heldBytes: number;
  /** The ping interval for sockets. A socket is closed if its client has not answered the previous ping. */
  readonly beatMs: number;
  /** The heartbeat interval for event streams. */
  readonly streamBeatMs: number;
  /** How often the tokens of open connections are checked. */
  readonly recheckMs: number;
  readonly headersMs: number;
  readonly requestMs: number;
  readonly keepAliveMs: number;
  /** How often Node checks the three timeouts above. */
  readonly checkMs: number;
  /** A response is abandoned if the client reads nothing from it for this long. */
  readonly stalledMs: number;
  /** How long a client has to complete a closing handshake. */
  readonly closeMs: number;
  readonly timers: Timers;
}

export type Stop = () => void;

export interface Timers {
  after(ms: number, act: () => void): Stop;
  every(ms: number, act: () => void): Stop;
}

/** These timers do not keep the process alive. */
export const systemTimers: Timers = {
  after(ms, act) {
    const timer = setTimeout(act, ms).unref();
    return () => clearTimeout(timer);
  },
  every(ms, act) {
    const timer = setInterval(act, ms).unref();
    return () => clearInterval(timer);
  },
};

/** File descriptors reserved for everything except connections and session files. */
const ownDescriptors = 48;

/** Connections can use two thirds of the file descriptors, so some are always available for sessions. */
export function connectionLimits(openFiles: number): Pick<Tuning, "idleConnections" | "maxConnections"> {
  const maxConnections = Math.max(8, Math.floor(((openFiles - ownDescriptors) * 2) / 3));
  return { maxConnections, idleConnections: Math.floor(maxConnections / 2) };
}

export const defaultTuning: Omit<Tuning, "idleConnections" | "maxConnections"> = {
  frameBytes: wireLimits.frameBytes,
  bodyChunks: 64 * 1024,
  connectBytes: wireLimits.connectBytes,
  connectMs: wireLimits.connectMs,
  waitingSockets: 512,
  requestsPerSecond: wireLimits.requestsPerSecond,
  socketsPerToken: wireLimits.socketsPerToken,
  requestsPerSocket: 100,
  requestsPerToken: 256,
  bodyBytesPerToken: 256 * 1024 * 1024,
  bodyBytes: 512 * 1024 * 1024,
  unsignedBytes: 64 * 1024 * 1024,
  subscriptionsPerSocket: 64,
  heldBytes: 64 * 1024 * 1024,
  beatMs: 30_000,
  streamBeatMs: 15_000,
  recheckMs: 1000,
  headersMs: 10_000,
  requestMs: 120_000,
  keepAliveMs: 60_000,
  checkMs: 1000,
  stalledMs: 60_000,
  closeMs: 2000,
  timers: systemTimers,
};
