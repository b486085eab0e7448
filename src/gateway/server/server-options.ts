import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../../core/clock.ts";
import { wireLimits } from "../../protocol/frames.ts";
import type { EventFilter } from "../../protocol/methods/calls.ts";
import type { Principal } from "../auth/principal.ts";
import type { NewToken, Tokens } from "../auth/tokens.ts";
import type { EventSelection } from "../events/event-selection.ts";
import type { EventHub } from "../events/subscriber.ts";
import type { Dispatch } from "../methods/dispatch.ts";

/** Where a server listens, and under which names it may be reached. */
export interface ServerSettings {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly isExposed: boolean;
  readonly allowedHosts: readonly string[];
  readonly trustProxy: readonly string[];
}

/** What a server stands on; everything else about it is its own. Functions, where a reload may change what they answer. */
export interface ServerApp {
  readonly version: string;
  readonly settings: ServerSettings;
  readonly dispatch: Dispatch;
  readonly hub: EventHub;
  readonly tokens: Tokens;
  readonly clock: Clock;
  /** What a page may show for a code of a link; `null`: the code is none. */
  exchange(code: unknown): NewToken | null;
  /** What takes in the signed messages of a channel; `null`: there is no such channel. */
  webhook(channelId: string): ((request: Request) => Promise<Response>) | null;
  /** MCP over Streamable HTTP, for whoever showed a token. */
  mcp(request: Request, principal: Principal): Promise<Response>;
  /** What `sessions.subscribe` and `/events` were asked for, as the hub wants it. Throws as a handler does. */
  wanted(filter: EventFilter, principal: Principal, userId: string | null): Promise<EventSelection>;
  metrics(): Promise<{ readonly contentType: string; readonly body: string } | null>;
  /** Why it cannot do its work now, a sentence each; empty: it can. */
  problems(): Promise<readonly string[]>;
  log(level: "info" | "warn" | "error", message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** A server without a port, to which another server hands requests. */
export interface MountedServer {
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Takes over the socket of an upgrade request. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  drain(graceMs: number): Promise<void>;
  close(): Promise<void>;
}

/** A server that listens. */
export interface Server {
  /** As a client writes it: `http://127.0.0.1:18790`. */
  readonly url: string;
  /**
   * Takes nothing new: from now on requests are `unavailable`, and sockets that are open are told to go. Resolves when
   * those that were under way are answered, or after so long.
   */
  drain(graceMs: number): Promise<void>;
  /** Lets go of the port and of every socket. */
  close(): Promise<void>;
}

/** How patient a server is, and how much it holds for anybody. Tests decide about all of it. */
export interface Tuning {
  readonly frameBytes: number;
  /** Chunks of one body; 25 MiB in as many is 400 bytes each. */
  readonly bodyChunks: number;
  readonly connectBytes: number;
  readonly connectMs: number;
  /** HTTP connections that are kept open after an answer; of more, the one that was idle longest is closed. */
  readonly idleConnections: number;
  /** Connections of all kinds. */
  readonly maxConnections: number;
  /** Sockets that have not said `connect`; of more, the oldest makes room. */
  readonly waitingSockets: number;
  readonly requestsPerSecond: number;
  /** Sockets and streams of events. */
  readonly socketsPerToken: number;
  readonly requestsPerSocket: number;
  /** Over HTTP, at the same time. */
  readonly requestsPerToken: number;
  /** Memory for bodies of pending requests: of one token, of all tokens together, and of all requests without a token. */
  readonly bodyBytesPerToken: number;
  readonly bodyBytes: number;
  readonly unsignedBytes: number;
  readonly subscriptionsPerSocket: number;
  /** Requests of a socket that are under way come to no more, and answers that it does not read. */
  readonly heldBytes: number;
  /** How often a socket is asked for a sign of life; without one until the next time it is gone. */
  readonly beatMs: number;
  /** How often a stream of events says that it is there. */
  readonly streamBeatMs: number;
  /** How often the tokens of whoever stays are looked at again. */
  readonly recheckMs: number;
  readonly headersMs: number;
  readonly requestMs: number;
  readonly keepAliveMs: number;
  /** How often connections are looked at for the three above. */
  readonly checkMs: number;
  /** An answer of which nothing was read for so long is given up. */
  readonly stalledMs: number;
  /** How long the other side has to close a socket too. */
  readonly closeMs: number;
  readonly timers: Timers;
}

export type Stop = () => void;

export interface Timers {
  after(ms: number, act: () => void): Stop;
  every(ms: number, act: () => void): Stop;
}

/** They keep no process alive. */
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

/** Descriptors that the process needs for other things than connections and session files. */
const ownDescriptors = 48;

/** Two thirds of the file descriptors are for connections, so that there are always some for sessions. */
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
