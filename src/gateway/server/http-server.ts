import type { Server as HttpServer, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { WireError } from "../../protocol/errors.ts";
import { findHostRefusal } from "./authenticator.ts";
import { apiHeaders, jsonType, sendError } from "./exchange.ts";
import { errorHeaders, notHttp, statusOf, tooSlow, unmetExpectation } from "./refusals.ts";
import { createRouter } from "./router.ts";
import type { ServerContext } from "./server-context.ts";
import type { Tuning } from "./server-options.ts";

/** Not a static `import`, because importing `node:http` would also load its members `fetch` and `WebSocket`. */
const { createServer, STATUS_CODES } = process.getBuiltinModule("node:http");

/** Creates the HTTP server. `Host` and `Origin` are checked before anything else. */
export function httpListener(
  context: ServerContext,
  { port, url }: { port(request: IncomingMessage): number; url(): string },
): HttpServer {
  const { tuning, app } = context;
  const route = createRouter(context, url);
  const last = { isLast: true, stalledMs: tuning.stalledMs };
  const server = createServer(
    {
      headersTimeout: tuning.headersMs,
      requestTimeout: tuning.requestMs,
      keepAliveTimeout: tuning.keepAliveMs,
      connectionsCheckingInterval: tuning.checkMs,
      requireHostHeader: false,
      // Some clients offer HTTP/2 with every request. They get an HTTP/1.1 response.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
    },
    (request, response) => {
      const problem = findHostRefusal(request, app.settings, port(request));
      if (problem !== null) sendError(response, problem, last);
      else route(request, response);
    },
  );
  capConnections(server, tuning);
  // Without these handlers, Node responds with 417 and no body, and drops CONNECT without a response.
  server.on("checkExpectation", (request, response) =>
    sendError(response, findHostRefusal(request, app.settings, port(request)) ?? unmetExpectation, last),
  );
  server.on("connect", (request, socket) => {
    socket.on("error", () => socket.destroy());
    refuseRaw(socket, findHostRefusal(request, app.settings, port(request)) ?? notHttp);
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else refuseRaw(socket, error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? tooSlow : notHttp);
  });
  return server;
}

/**
 * Closes the connection that has been idle the longest when there are too many, so that keep-alive connections cannot
 * use up the file descriptors. A new connection is closed only if no other connection is idle, because its first
 * request might already be in flight.
 */
function capConnections(
  server: HttpServer,
  { idleConnections, maxConnections }: Pick<Tuning, "idleConnections" | "maxConnections">,
): void {
  const open = new Map<Duplex, number>();
  const fresh = new Set<Duplex>();
  const idle = new Set<Duplex>();
  const closeOldest = () => {
    const [oldest] = idle.size > 0 ? idle : fresh;
    if (oldest === undefined) return false;
    forget(oldest);
    oldest.destroy();
    return true;
  };
  const forget = (socket: Duplex) => {
    open.delete(socket);
    fresh.delete(socket);
    idle.delete(socket);
  };
  const addRequests = (socket: Duplex, count: number) => {
    const before = open.get(socket);
    if (before === undefined) return;
    open.set(socket, before + count);
    fresh.delete(socket);
    idle.delete(socket);
    if (before + count > 0) return;
    idle.add(socket);
    if (idle.size > idleConnections) closeOldest();
  };
  server.on("connection", (socket) => {
    if (open.size >= maxConnections && !closeOldest()) return void socket.destroy();
    open.set(socket, 0);
    fresh.add(socket);
    socket.once("close", () => forget(socket));
  });
  server.on("request", ({ socket }, response) => {
    addRequests(socket, 1);
    response.once("close", () => addRequests(socket, -1));
  });
  server.on("upgrade", (_request, socket) => addRequests(socket, 1));
}

/** Writes an error to a socket that has no response object. Used before an upgrade and for malformed requests. */
export function refuseRaw(socket: Duplex, error: WireError): void {
  const status = statusOf(error);
  const text = JSON.stringify({ error });
  const headers = {
    ...apiHeaders,
    ...errorHeaders(error),
    "content-type": jsonType,
    "content-length": String(Buffer.byteLength(text)),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${text}`);
}
