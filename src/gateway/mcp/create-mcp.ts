import type { McpHttpHandler, ServerEvent, ServerEventBus } from "@modelcontextprotocol/server";
import {
  createMcpHandler,
  isJsonContentType,
  isLegacyRequest,
  readRequestBody,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { SkeinError } from "../../core/errors.ts";
import { parseJson } from "../../core/parse-json.ts";
import { wireLimits } from "../../protocol/frames.ts";
import { sessionToolTable } from "../../tools/all.ts";
import type { SessionTool } from "../../tools/session-tool.ts";
import type { Principal } from "../auth/principal.ts";
import type { McpAsker, McpBackend, ReadMessage } from "./mcp-context.ts";
import { mcpAskerOf } from "./mcp-context.ts";
import type { SubscribedUris } from "./mcp-server.ts";
import { mcpServer } from "./mcp-server.ts";
import { Notices } from "./notices.ts";

/** Serves MCP over Streamable HTTP to authenticated clients. */
export interface Mcp {
  /** Handles one request to `/mcp`. `?agent=` names the agent that the client acts as. */
  handle(request: Request, principal: Principal): Promise<Response>;
  /** Closes every connection and stream. */
  close(): Promise<void>;
}

const maxBody = { maxRequestBodySize: wireLimits.frameBytes };

/**
 * Parses the body in chunks. Replaces an invalid or oversized body with a short invalid string so that the SDK returns
 * its usual error. For an oversized body, also sets `Content-Length` to a value above the limit.
 */
async function readMessage(request: Request): Promise<ReadMessage> {
  if (request.method !== "POST" || !isJsonContentType(request.headers.get("content-type")))
    return { request };
  try {
    const read = await readRequestBody(request, wireLimits.frameBytes);
    if (read.tooLarge) {
      const headers = {
        ...Object.fromEntries(request.headers),
        "content-length": `${wireLimits.frameBytes + 1}`,
      };
      return { request: new Request(request, { headers, body: "{" }) };
    }
    return { request, parsedBody: await parseJson(read.text, request.signal) };
  } catch {
    return { request: new Request(request, { body: "{" }) };
  }
}

/**
 * Serves both generations of the protocol: revisions up to 2025-11-25, which start with a handshake, and 2026-07-28,
 * which does not.
 */
export function createMcp(app: McpBackend): Mcp {
  const connections = new LegacyConnections(app, sessionToolTable);
  const exchanges = new StatelessRequests(app, sessionToolTable);
  return {
    handle: async (request, principal) => {
      const asker = askerIn(request, principal, app);
      if (asker instanceof Response) return asker;
      const read = await readMessage(request);
      const isOlder = await isLegacyRequest(read.request, read.parsedBody, maxBody);
      return isOlder ? connections.handle(read, asker) : exchanges.handle(read, asker);
    },
    close: async () => {
      await Promise.all([connections.close(), exchanges.close()]);
    },
  };
}

function askerIn(
  request: Request,
  principal: Principal,
  { defaultAgentId }: McpBackend,
): McpAsker | Response {
  try {
    return mcpAskerOf(principal, new URL(request.url).searchParams.get("agent") ?? defaultAgentId);
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    const { message } = error;
    return Response.json({ jsonrpc: "2.0", error: { code: -32602, message }, id: null }, { status: 400 });
  }
}

/** The maximum number of connections per token. If there are more, the one that has been idle the longest is closed. */
const mostPerToken = 32;

interface Connection {
  readonly asker: McpAsker;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  close(): Promise<void>;
}

/**
 * Handles clients that use revisions up to 2025-11-25. Each client starts with a handshake, gets an MCP session ID, and
 * receives notifications on an open stream.
 */
export class LegacyConnections {
  readonly #app: McpBackend;
  readonly #table: readonly SessionTool[];
  /** The most recently used connection is last. */
  readonly #open = new Map<string, Connection>();

  constructor(app: McpBackend, table: readonly SessionTool[]) {
    this.#app = app;
    this.#table = table;
  }

  async handle(message: ReadMessage, asker: McpAsker): Promise<Response> {
    const { request, ...body } = message;
    const id = request.headers.get("mcp-session-id");
    if (id === null) return this.#begin(message, asker);
    const known = this.#open.get(id);
    if (known === undefined || !isSame(known.asker, asker)) return noSuchConnection();
    this.#open.delete(id);
    this.#open.set(id, known);
    return known.transport.handleRequest(request, body);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((each) => each.close()));
  }

  /** If the request is not a handshake, the transport rejects it and no connection is kept. */
  async #begin({ request, ...body }: ReadMessage, asker: McpAsker): Promise<Response> {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      maxRequestBodySize: wireLimits.frameBytes,
    });
    const subscribed: SubscribedUris = new Set();
    const server = mcpServer(this.#app, this.#table, asker, subscribed);
    let notices: Notices | null = null;
    server.onclose = () => {
      notices?.close();
      this.#open.delete(transport.sessionId ?? "");
    };
    await server.connect(transport);
    const response = await transport.handleRequest(request, body);
    if (transport.sessionId === undefined) {
      await server.close();
      return response;
    }
    if (asker.scopes.includes("read")) notices = noticesTo(this.#app, asker, server, subscribed);
    this.#open.set(transport.sessionId, { asker, transport, close: () => server.close() });
    await this.#makeRoom(asker);
    return response;
  }

  /**
   * Closes the token's longest-idle connections above the limit, and every connection whose token is no longer valid.
   */
  async #makeRoom({ tokenId }: McpAsker): Promise<void> {
    const all = [...this.#open.values()];
    const own = all.filter(({ asker }) => asker.tokenId === tokenId);
    const surplus = own.slice(0, Math.max(0, own.length - mostPerToken));
    const tokenIds = new Set(all.map(({ asker }) => asker.tokenId));
    const ended = await this.#app.findEndedTokens([...tokenIds]);
    const left = all.filter(({ asker }) => ended.has(asker.tokenId));
    await Promise.all([...new Set([...surplus, ...left])].map((each) => each.close()));
  }
}

/** Sends notifications over a connection for the subscribed URIs, or for all URIs if `subscribed` is `null`. */
export function noticesTo(
  app: McpBackend,
  asker: McpAsker,
  server: ReturnType<typeof mcpServer>,
  subscribed: SubscribedUris | null,
): Notices {
  const listener = {
    updated: (uris: readonly string[]) => {
      for (const uri of uris) server.sendResourceUpdated({ uri }).catch(app.report);
    },
    listChanged: () => void server.sendResourceListChanged().catch(app.report),
  };
  return new Notices(app, asker, listener, (uri) => subscribed?.has(uri) ?? true);
}

/** A connection belongs to the token that opened it. Other tokens cannot see it. */
function isSame(one: McpAsker, other: McpAsker): boolean {
  return (
    one.sessionKey === other.sessionKey &&
    one.userId === other.userId &&
    one.scopes.join() === other.scopes.join()
  );
}

function noSuchConnection(): Response {
  const message =
    "Session not found. This connection has ended or belongs to another client. Start again with initialize.";
  return Response.json({ jsonrpc: "2.0", error: { code: -32001, message }, id: null }, { status: 404 });
}

/**
 * The maximum number of handlers. If there are more, the least recently used one is dropped, but its pending requests
 * continue.
 */
const mostAskers = 500;

/**
 * Handles clients that use revision 2026-07-28. Requests are independent of each other, and notifications are sent on
 * `subscriptions/listen`.
 */
export class StatelessRequests {
  readonly #app: McpBackend;
  readonly #table: readonly SessionTool[];
  readonly #handlers = new Map<string, McpHttpHandler>();

  constructor(app: McpBackend, table: readonly SessionTool[]) {
    this.#app = app;
    this.#table = table;
  }

  handle({ request, ...body }: ReadMessage, asker: McpAsker): Promise<Response> {
    const { userId, sessionKey, scopes } = asker;
    const id = JSON.stringify([userId, sessionKey, scopes]);
    const handler = this.#handlers.get(id) ?? this.#handlerFor(asker);
    this.#handlers.delete(id);
    this.#handlers.set(id, handler);
    const [oldest] = this.#handlers.keys();
    if (this.#handlers.size > mostAskers && oldest !== undefined) this.#handlers.delete(oldest);
    return handler.fetch(request, body);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#handlers.values()].map((handler) => handler.close()));
  }

  /**
   * Creates the handler for this client. Each client has a separate handler because its bus delivers only that client's
   * notifications.
   */
  #handlerFor(asker: McpAsker): McpHttpHandler {
    return createMcpHandler(() => mcpServer(this.#app, this.#table, asker), {
      legacy: "reject",
      bus: new NoticeBus(this.#app, asker),
      maxRequestBodySize: wireLimits.frameBytes,
      onerror: (error) => this.#app.report(error),
    });
  }
}

/** Subscribes to changes while the bus has listeners. */
class NoticeBus implements ServerEventBus {
  readonly #app: McpBackend;
  readonly #asker: McpAsker;
  readonly #listeners = new Set<(event: ServerEvent) => void>();
  #notices: Notices | null = null;

  constructor(app: McpBackend, asker: McpAsker) {
    this.#app = app;
    this.#asker = asker;
  }

  publish(event: ServerEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }

  subscribe(listener: (event: ServerEvent) => void): () => void {
    const entry = (event: ServerEvent) => listener(event);
    this.#listeners.add(entry);
    this.#notices ??= new Notices(this.#app, this.#asker, {
      updated: (uris) => {
        for (const uri of uris) this.publish({ kind: "resource_updated", uri });
      },
      listChanged: () => this.publish({ kind: "resources_list_changed" }),
    });
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size > 0) return;
      this.#notices?.close();
      this.#notices = null;
    };
  }
}
