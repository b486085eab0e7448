import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../core/clock.ts";
import type { EventFilter } from "../protocol/methods/calls.ts";
import type { Principal } from "./auth/principal.ts";
import type { NewToken, Tokens } from "./auth/tokens.ts";
import type { Dispatch } from "./calls/dispatch.ts";
import type { EventHub, Wanted } from "./events/contract.ts";

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
export interface ServerParts {
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
  wanted(filter: EventFilter, principal: Principal, userId: string | null): Promise<Wanted>;
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
