import type { Server as HttpServer, RequestListener } from "node:http";
import { createServer, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { FastifyInstance } from "fastify";
import Fastify from "fastify";
import type { WireError } from "../../../protocol/errors.ts";
import { apiHeaders } from "../../auth/headers.ts";
import type { Ground } from "../door/ground.ts";
import { errorHeaders, noSuch, notHttp, statusOf, tooSlow } from "../door/refusals.ts";
import { siteRefusal } from "../door/sites.ts";
import { jsonType, sendError } from "./answers.ts";
import { addRoutes } from "./routes.ts";

export interface Listener {
  readonly server: HttpServer;
  readonly app: FastifyInstance;
}

/** A server of HTTP. Host and Origin are looked at before anything else sees a request. */
export async function httpListener(
  ground: Ground,
  { port, url }: { port(): number; url(): string },
): Promise<Listener> {
  const { tuning, parts } = ground;
  let route: RequestListener | null = null;
  const server = createServer(
    {
      headersTimeout: tuning.headersMs,
      requestTimeout: tuning.requestMs,
      keepAliveTimeout: tuning.keepAliveMs,
      connectionsCheckingInterval: tuning.checkMs,
      requireHostHeader: false,
    },
    (request, response) => {
      const problem = siteRefusal(request, parts.settings, port());
      const rules = { isLast: true, stalledMs: tuning.stalledMs };
      if (problem !== null) sendError(response, problem, rules);
      else route?.(request, response);
    },
  );
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else refuseRaw(socket, error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? tooSlow : notHttp);
  });
  const app = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 256 },
    clientErrorHandler: () => undefined,
    serverFactory: (handler) => {
      route = handler as RequestListener;
      return server;
    },
    frameworkErrors: (_error, request, reply) => {
      reply.hijack();
      sendError(reply.raw, noSuch("such path"), { isLast: true, stalledMs: tuning.stalledMs });
      request.raw.resume();
    },
  });
  addRoutes(app, ground, url);
  await app.ready();
  return { server, app };
}

/** An answer where there is no response to write it with: before an upgrade, and to what is no request. */
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
