import type { Server as HttpServer, IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { normalizeAddress } from "../auth/addresses.ts";
import { checkBinding } from "../auth/allowed-hosts.ts";
import { httpListener, refuseRaw } from "./http-server.ts";
import type { ServerContext } from "./server-context.ts";
import { createServerContext } from "./server-context.ts";
import type { MountedServer, Server, ServerOptions, ServerSettings, Tuning } from "./server-options.ts";
import { SocketServer } from "./socket-server.ts";

/** Listens for HTTP and WebSockets on one port. Rejects with the system error if it cannot listen. */
export async function createServer(app: ServerOptions, tuning: Partial<Tuning> = {}): Promise<Server> {
  const { settings } = app;
  checkBinding(settings.host, settings.isExposed);
  const context = createServerContext(app, tuning);
  let port = settings.port;
  const url = () => urlOf(settings.host, port);
  const server = httpListener(context, { port: () => port, url });
  const sockets = new SocketServer(context, { port: () => port, refuse: refuseRaw });
  const { timers, recheckMs } = context.tuning;
  const stopRechecks = timers.every(recheckMs, () => void context.tokenWatch.recheck());
  server.on("upgrade", (request, socket, head) => sockets.upgrade(request, socket, head));
  try {
    port = await listen(server, settings);
  } catch (error) {
    stopRechecks();
    sockets.close();
    throw error;
  }
  server.on("error", (error) => app.log("error", "The server cannot accept a connection", { error }));
  return {
    url: url(),
    drain: (graceMs) => drain(context, sockets, graceMs),
    close: () => {
      stopRechecks();
      return close(context, sockets, server);
    },
  };
}

/** Creates a server without a port. Another server passes requests and upgrades to it. */
export async function mountServer(app: ServerOptions, tuning: Partial<Tuning> = {}): Promise<MountedServer> {
  const context = createServerContext(app, tuning);
  const port = ({ socket }: IncomingMessage) => socket.localPort ?? app.settings.port;
  const server = httpListener(context, { port, url: () => "http://localhost" });
  const sockets = new SocketServer(context, { port, refuse: refuseRaw });
  const { timers, recheckMs } = context.tuning;
  const stopRechecks = timers.every(recheckMs, () => void context.tokenWatch.recheck());
  return {
    handle: (request, response) => void server.emit("request", request, response),
    upgrade: (request, socket, head) => sockets.upgrade(request, socket, head),
    drain: (graceMs) => drain(context, sockets, graceMs),
    close: async () => {
      stopRechecks();
      void context.pendingRequests.stop();
      context.pendingRequests.abortAll();
      sockets.close();
    },
  };
}

async function drain(context: ServerContext, sockets: SocketServer, graceMs: number): Promise<void> {
  const { pendingRequests, tuning } = context;
  const idle = pendingRequests.stop();
  sockets.drain();
  await new Promise<void>((resolve) => {
    const stopTimer = tuning.timers.after(graceMs, resolve);
    void idle.then(() => {
      stopTimer();
      resolve();
    });
  });
  pendingRequests.abortAll();
}

async function close(context: ServerContext, sockets: SocketServer, server: HttpServer): Promise<void> {
  const isClosed = new Promise<void>((resolve) => server.close(() => resolve()));
  void context.pendingRequests.stop();
  context.pendingRequests.abortAll();
  sockets.close();
  server.closeAllConnections();
  await isClosed;
}

function listen(server: HttpServer, { host, port }: ServerSettings): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.removeListener("error", reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Returns a server's URL. A wildcard address is replaced with the loopback address. */
export function urlOf(host: string, port: number): string {
  const address = normalizeAddress(host);
  if (address === "0.0.0.0") return `http://127.0.0.1:${port}`;
  if (address === "0:0:0:0:0:0:0:0") return `http://[::1]:${port}`;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
