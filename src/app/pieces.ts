import type { Redactor } from "../access/redaction/redactor.ts";
import type { Clock } from "../core/clock.ts";
import type { SkeinEvent } from "../core/events.ts";
import type { Principal } from "../gateway/auth/principal.ts";
import type { Tokens } from "../gateway/auth/tokens.ts";
import type { EventSelection } from "../gateway/events/event-selection.ts";
import type { EventHub, HubStats } from "../gateway/events/subscriber.ts";
import type { Handlers, SkeinApp, TokenApp } from "../gateway/methods/dispatch.ts";
import type { HeavyCalls } from "../gateway/methods/heavy-calls.ts";
import type { Server, ServerApp } from "../gateway/server/server-options.ts";
import type { EventFilter } from "../protocol/methods/calls.ts";

/** What a gateway is put together from, so that each can be another in a test. */
export interface GatewayPieces {
  /** Every method, on one Skein. */
  handlers(deps: ServingDeps): Handlers;
  /** The one hub of a process. */
  openHub(parts: HubParts): OpenHub;
  /** MCP for whoever showed a token. */
  openMcp(parts: McpDoorParts): McpDoor;
  /** What was asked to be told of, as the hub wants it. */
  wanted(
    deps: ServingDeps,
    filter: EventFilter,
    principal: Principal,
    userId: string | null,
  ): Promise<EventSelection>;
  /** Begins to listen. Rejects with the system's own error where it cannot. */
  listen(parts: ServerApp): Promise<Server>;
}

export type ServingDeps = SkeinApp & TokenApp;

export interface HubParts {
  readonly tokens: Tokens;
  readonly clock: Clock;
  /** What happens in every Skein of the process, over reloads. Returns a function that ends it. */
  subscribe(listener: (event: SkeinEvent) => void): () => void;
  /** Asked when it is needed, because it is another after a reload. */
  deps(): ServingDeps;
  /** There before anything serves. */
  redactor(): Redactor;
  /** Told of what nobody asked for and went wrong. */
  report(error: unknown): void;
}

export interface OpenHub extends EventHub {
  stats(): HubStats;
  close(): void;
}

export interface McpDoorParts extends Pick<HubParts, "tokens" | "subscribe" | "deps" | "report"> {
  readonly version: string;
  /** The heavy calls of the process: those that come by MCP count too. */
  readonly heavy: HeavyCalls;
  /** What serves now. It stays open until the lease is disposed of. */
  acquire(): Disposable & { readonly deps: ServingDeps };
}

export interface McpDoor {
  handle(request: Request, principal: Principal): Promise<Response>;
  close(): Promise<void>;
}
