import { randomUUID } from "node:crypto";
import manifest from "../../package.json" with { type: "json" };
import type { Redactor } from "../access/redaction/redactor.ts";
import { basePath as basePathKind } from "../config/sections/gateway.ts";
import { fits } from "../core/check-schema.ts";
import { SkeinError } from "../core/errors.ts";
import type { SharedEvents } from "../core/events.ts";
import { thrownText } from "../core/text.ts";
import { ensureAdminToken } from "../gateway/auth/admin-token.ts";
import { exchangeLinkCode } from "../gateway/auth/link-codes.ts";
import type { Principal } from "../gateway/auth/principal.ts";
import { Tokens } from "../gateway/auth/tokens.ts";
import type { EventNumbers } from "../gateway/events/event-numbers.ts";
import { openDurableNumbers } from "../gateway/events/event-numbers.ts";
import { selectEvents } from "../gateway/events/event-selection.ts";
import { createEventHub } from "../gateway/events/hub.ts";
import type { LiveTexts } from "../gateway/events/live-runs.ts";
import type { EventHub, HubStats } from "../gateway/events/subscriber.ts";
import { subscribeForUser } from "../gateway/mcp/mcp-context.ts";
import type { Handlers, MethodApp } from "../gateway/methods/dispatch.ts";
import { Dispatch } from "../gateway/methods/dispatch.ts";
import { allHandlers } from "../gateway/methods/handlers.ts";
import type { HeavyCalls } from "../gateway/methods/heavy-calls.ts";
import { heavyToolQueueOf } from "../gateway/methods/heavy-calls.ts";
import { createServer, mountServer } from "../gateway/server/create-server.ts";
import type { Server, ServerOptions } from "../gateway/server/server-options.ts";
import type { GatewayEvent } from "../protocol/events.ts";
import type { App, MountedGateway, MountOptions } from "../sessions/app.ts";
import { Skein } from "../sessions/skein.ts";
import { warnAboutChatPackages } from "./check-chat-packages.ts";
import { findConsoleFolder } from "./console-folder.ts";
import { findStoreProblems, startTokenUpkeep } from "./gateway-upkeep.ts";

/** How long pending requests have to finish when the gateway closes. */
const graceMs = 2000;

/** Opens a gateway for the caller's own server. The admin token is stored in the file `token` in `root`. */
export async function mountGateway(
  app: App,
  root: string,
  { allowedHosts = [], basePath = app.config.gateway.basePath ?? undefined }: MountOptions,
): Promise<MountedGateway> {
  const { clock, config, store, events, redactor } = app;
  const log: ServerOptions["log"] = (level, message, fields) => app.log.write(level, message, fields);
  const report = (error: unknown) => log("error", thrownText(error));
  checkBasePath(basePath);
  warnAboutChatPackages(app.loaded, log);
  const tokens = new Tokens(store.work, { clock, keepsRevocations: true });
  await ensureAdminToken(root, tokens);
  const subscribe: HubOptions["subscribe"] = (listener, onLoss) => events.subscribe(listener, onLoss);
  const numbers = await openDurableNumbers({ engine: store.work.engine, report });
  const hasPeers = store.work.shared !== null;
  const hub = openHub({ numbers, hasPeers, subscribe, redactor: () => redactor, report });
  const served: MethodApp = { ...app, skein: new Skein(app), tokens, live: hub };
  const handlers = allHandlers(served);
  const dispatch = new Dispatch({
    handlers: () => handlers,
    newErrorId: randomUUID,
    report: (errorId, method, error) =>
      log("error", `${method} failed: ${thrownText(error)}`, { errorId, error }),
  });
  const { version } = manifest;
  const mcp = openMcp({
    tokens,
    subscribe,
    report,
    version,
    heavy: dispatch.heavy,
    app: () => served,
    acquire: () => ({ app: served, [Symbol.dispose]: () => undefined }),
  });
  const { host, port, trustProxy } = config.gateway;
  const server = await mountServer({
    version,
    settings: {
      host,
      port,
      isExposed: true,
      servesClients: true,
      allowedHosts: [...config.gateway.allowedHosts, ...allowedHosts],
      trustProxy,
      basePath: basePath ?? "",
      consoleFolder: findConsoleFolder(config.gateway.console),
    },
    dispatch,
    hub,
    tokens,
    clock,
    exchange: (code) => exchangeLinkCode(tokens, code),
    webhook: (channelId) => served.skein.webhook(channelId),
    mcp: (request, principal) => mcp.handle(request, principal),
    wanted: (filter, principal, userId) => selectEvents(filter, principal, userId, served),
    metrics: () => served.skein.metrics(),
    problems: () => findStoreProblems(store),
    log,
  });
  const endUpkeep = startTokenUpkeep(tokens, { log });
  let closing: Promise<void> | null = null;
  const close = async () => {
    await server.drain(graceMs);
    await server.close();
    await endUpkeep();
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

function checkBasePath(given: string | undefined): void {
  if (given === undefined || fits(basePathKind.schema, given)) return;
  const problem = `basePath is ${JSON.stringify(given)}, which is not ${basePathKind.expected}`;
  throw new SkeinError("invalid_arguments", { problem, advice: "Change it, or omit it" });
}

function openHub({ numbers, hasPeers, subscribe, redactor, report }: HubOptions): GatewayHub {
  const current: Redactor = {
    redact: (text) => redactor().redact(text),
    redactJson: (value) => redactor().redactJson(value),
    stream: () => redactor().stream(),
  };
  return createEventHub({ numbers, hasPeers, redactor: current, subscribe, report });
}

/** Opens MCP lazily because most gateways never receive an MCP request and loading it would slow down every start. */
function openMcp(options: McpOptions): McpEndpoint {
  let endpoint: Promise<McpEndpoint> | null = null;
  return {
    handle: async (request, principal) => {
      endpoint ??= loadMcp(options);
      return (await endpoint).handle(request, principal);
    },
    close: async () => (await endpoint)?.close(),
  };
}

/** Loads MCP. Settings that a reload can change are read for each request. */
async function loadMcp(options: McpOptions): Promise<McpEndpoint> {
  const { tokens, version, heavy, app, acquire, subscribe, report } = options;
  const { createMcp } = await import("../gateway/mcp/create-mcp.ts");
  return createMcp({
    version,
    get scope() {
      return app().config.session.scope;
    },
    get defaultAgentId() {
      return app().agents.first;
    },
    findEndedTokens: (tokenIds) => tokens.findEnded(tokenIds),
    callTool: (name, args, { tokenId, ...call }) =>
      heavy.run(tokenId, heavyToolQueueOf(name, []), call.signal, async () => {
        using lease = acquire();
        return await lease.app.skein.callTool(name, args, call);
      }),
    allowedTools: async ({ userId, agentId, sessionKey }) => {
      using lease = acquire();
      const tools = await lease.app.skein.tools({ userId, agentId, sessionKey });
      return new Set(tools.map(({ name }) => name));
    },
    subscribe: subscribeForUser(subscribe),
    report,
  });
}

/** The parts of the gateway that `skein start` runs. Tests replace some of them. */
export interface GatewayPieces {
  handlers(app: MethodApp): Handlers;
  openHub(options: HubOptions): GatewayHub;
  openMcp(options: McpOptions): McpEndpoint;
  /** Starts listening. Rejects with the system error if it cannot listen. */
  listen(options: ServerOptions): Promise<Server>;
}

export const gatewayPieces: GatewayPieces = {
  handlers: allHandlers,
  openHub,
  openMcp,
  listen: (options) => createServer(options),
};

export interface HubOptions {
  readonly numbers: EventNumbers;
  /** Whether other gateways serve the same sessions. */
  readonly hasPeers: boolean;
  /** Delivers events from every Skein instance in the process, across reloads, and from other processes. */
  readonly subscribe: SharedEvents["subscribe"];
  /** Called for each use because a reload replaces the redactor. */
  redactor(): Redactor;
  /** Receives errors that no client is waiting for. */
  report(error: unknown): void;
}

export interface GatewayHub extends EventHub, LiveTexts {
  announce(event: GatewayEvent): void;
  stats(): HubStats;
  close(): void;
}

export interface McpOptions extends Pick<HubOptions, "subscribe" | "report"> {
  readonly tokens: Tokens;
  readonly version: string;
  /** The process's heavy calls, including those over MCP. */
  readonly heavy: HeavyCalls;
  /** The app that currently serves requests. */
  app(): MethodApp;
  /** Like `app`, but the app stays open until the lease is disposed of. */
  acquire(): Disposable & { readonly app: MethodApp };
}

/** The MCP endpoint for token holders. */
export interface McpEndpoint {
  handle(request: Request, principal: Principal): Promise<Response>;
  close(): Promise<void>;
}
