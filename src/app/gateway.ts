import { randomUUID } from "node:crypto";
import manifest from "../../package.json" with { type: "json" };
import type { Redactor } from "../access/redaction/redactor.ts";
import type { Clock } from "../core/clock.ts";
import type { EventBus, SkeinEvent } from "../core/events.ts";
import { thrownText } from "../core/text.ts";
import { ensureAdminToken } from "../gateway/auth/admin-token.ts";
import { exchangeLinkCode } from "../gateway/auth/link-codes.ts";
import type { Principal } from "../gateway/auth/principal.ts";
import { Tokens } from "../gateway/auth/tokens.ts";
import { createDurableNumbers } from "../gateway/events/event-numbers.ts";
import type { EventSelection } from "../gateway/events/event-selection.ts";
import { selectEvents } from "../gateway/events/event-selection.ts";
import { createEventHub } from "../gateway/events/hub.ts";
import type { EventHub, HubStats } from "../gateway/events/subscriber.ts";
import { subscribeForUser } from "../gateway/mcp/mcp-context.ts";
import type { Handlers, SkeinApp, TokenApp } from "../gateway/methods/dispatch.ts";
import { Dispatch } from "../gateway/methods/dispatch.ts";
import { allHandlers } from "../gateway/methods/handlers.ts";
import type { HeavyCalls } from "../gateway/methods/heavy-calls.ts";
import { heavyToolQueueOf } from "../gateway/methods/heavy-calls.ts";
import { createServer, mountServer } from "../gateway/server/create-server.ts";
import type { Server, ServerApp } from "../gateway/server/server-options.ts";
import type { EventFilter } from "../protocol/methods/calls.ts";
import type { App, MountedGateway, MountOptions } from "../sessions/app.ts";
import { Skein } from "../sessions/skein.ts";
import { skeinDeps } from "./call-deps.ts";

/** What of a gateway may still be under way when it is closed. */
const graceMs = 2000;

/** Opens a gateway for a server of the user's own. Its tokens are those of the folder, in the file `token` of `root`. */
export async function mountGateway(
  app: App,
  root: string,
  { allowedHosts = [] }: MountOptions,
): Promise<MountedGateway> {
  const { clock, config, store, bus } = app;
  const deps = skeinDeps(new Skein(app), app.loaded, app);
  const log: ServerApp["log"] = (level, message, fields) => app.log.write(level, message, fields);
  const report = (error: unknown) => log("error", thrownText(error));
  const tokens = new Tokens({ ledger: store.work.ledger, clock, keepsRevocations: true });
  ensureAdminToken(root, tokens);
  const serving = { ...deps, tokens };
  const handlers = gatewayPieces.handlers(serving);
  const dispatch = new Dispatch({
    handlers: () => handlers,
    newErrorId: randomUUID,
    report: (errorId, method, error) =>
      log("error", `${method} failed: ${thrownText(error)}`, { errorId, error }),
  });
  const parts = {
    tokens,
    clock,
    subscribe: (listener: Parameters<EventBus["subscribe"]>[0]) => bus.subscribe(listener),
    deps: () => serving,
    redactor: () => deps.redactor,
    report,
  };
  const { version } = manifest;
  const hub = gatewayPieces.openHub(parts);
  const mcp = gatewayPieces.openMcp({
    ...parts,
    version,
    heavy: dispatch.heavy,
    acquire: () => ({ deps: serving, [Symbol.dispose]: () => undefined }),
  });
  const { host, port, trustProxy } = config.gateway;
  const server = await mountServer({
    version,
    settings: {
      host,
      port,
      isExposed: true,
      allowedHosts: [...config.gateway.allowedHosts, ...allowedHosts],
      trustProxy,
    },
    dispatch,
    hub,
    tokens,
    clock,
    exchange: (code) => exchangeLinkCode(tokens, code),
    webhook: (channelId) => deps.skein.webhook(channelId),
    mcp: (request, principal) => mcp.handle(request, principal),
    wanted: (filter, principal, userId) => gatewayPieces.wanted(serving, filter, principal, userId),
    metrics: () => deps.skein.metrics(),
    problems: async () => ((await store.upkeep?.health()) ?? []).map(({ message }) => `${message}.`),
    log,
  });
  let closing: Promise<void> | null = null;
  const close = async () => {
    await server.drain(graceMs);
    await server.close();
    await mcp.close();
    hub.close();
  };
  return {
    handler: (request, response) => server.handle(request, response),
    upgrade: (request, socket, head) => server.upgrade(request, socket, head),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

/** What the gateway of `skein start` is put together from. */
export const gatewayPieces: GatewayPieces = {
  handlers: allHandlers,
  openHub,
  openMcp,
  wanted: (deps, params, principal, userId) => selectEvents(params, principal, userId, deps),
  listen: (parts) => createServer(parts),
};

function openHub({ tokens, subscribe, redactor, report }: HubParts) {
  const numbers = createDurableNumbers({ ledger: tokens.ledger, report });
  return createEventHub({ numbers, redactor: asked(redactor), subscribe, report });
}

/** Another one after a reload. */
function asked(redactor: () => Redactor): Redactor {
  return {
    redact: (text) => redactor().redact(text),
    redactJson: (value) => redactor().redactJson(value),
    stream: () => redactor().stream(),
  };
}

/** Loaded with the first request: most gateways never have one, and all would start the later for it. */
function openMcp(parts: McpDoorParts): McpDoor {
  let door: Promise<McpDoor> | null = null;
  return {
    handle: async (request, principal) => {
      door ??= loadMcp(parts);
      return (await door).handle(request, principal);
    },
    close: async () => (await door)?.close(),
  };
}

/** What a reload may change is asked for with each request. */
async function loadMcp(parts: McpDoorParts): Promise<McpDoor> {
  const { tokens, version, heavy, deps, acquire, subscribe, report } = parts;
  const { createMcp } = await import("../gateway/mcp/create-mcp.ts");
  return createMcp({
    version,
    get scope() {
      return deps().config.session.scope;
    },
    get defaultAgentId() {
      return deps().defaultAgentId;
    },
    isCurrent: (tokenId) => tokens.current(tokenId) !== null,
    callTool: (name, args, { tokenId, ...call }) =>
      heavy.run(tokenId, heavyToolQueueOf(name, []), call.signal, async () => {
        using lease = acquire();
        return await lease.deps.skein.callTool(name, args, call);
      }),
    allowedTools: async ({ userId, agentId, sessionKey }) => {
      using lease = acquire();
      const tools = await lease.deps.skein.tools({ userId, agentId, sessionKey });
      return new Set(tools.map(({ name }) => name));
    },
    subscribe: subscribeForUser(subscribe),
    report,
  });
}

/** What a gateway is put together from, so that each can be another in a test. */
export interface GatewayPieces {
  /** Every method, on one Skein. */
  handlers(deps: ServingDeps): Handlers;
  /** The one hub of a process. */
  openHub(parts: HubParts): OpenHub;
  /** MCP for the holder of a token. */
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
