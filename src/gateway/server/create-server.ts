import type { Server as HttpServer, IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { plainAddress } from "../auth/addresses.ts";
import { checkBinding } from "../auth/allowed-hosts.ts";
import { httpListener, refuseRaw } from "./http-server.ts";
import type { Ground } from "./server-context.ts";
import { groundOf } from "./server-context.ts";
import type { MountedServer, Server, ServerParts, ServerSettings, Tuning } from "./server-options.ts";
import { Sockets } from "./socket-server.ts";

/** A server that listens, with HTTP and sockets on one port. Rejects with the system's own error where it cannot. */
export async function createServer(parts: ServerParts, tuning: Partial<Tuning> = {}): Promise<Server> {
  const { settings } = parts;
  checkBinding(settings.host, settings.isExposed);
  const ground = groundOf(parts, tuning);
  let port = settings.port;
  const url = () => urlOf(settings.host, port);
  const server = httpListener(ground, { port: () => port, url });
  const sockets = new Sockets(ground, { port: () => port, refuse: refuseRaw });
  const { timers, recheckMs } = ground.tuning;
  const stopRechecks = timers.every(recheckMs, () => ground.visitors.recheck());
  server.on("upgrade", (request, socket, head) => sockets.upgrade(request, socket, head));
  try {
    port = await listen(server, settings);
  } catch (error) {
    stopRechecks();
    sockets.close();
    throw error;
  }
  server.on("error", (error) => parts.log("error", "The server cannot take a connection", { error }));
  return {
    url: url(),
    drain: (graceMs) => drain(ground, sockets, graceMs),
    close: () => {
      stopRechecks();
      return close(ground, sockets, server);
    },
  };
}

/** A server without a port: another server passes requests and upgrades to it. */
export async function mountServer(parts: ServerParts, tuning: Partial<Tuning> = {}): Promise<MountedServer> {
  const ground = groundOf(parts, tuning);
  const port = ({ socket }: IncomingMessage) => socket.localPort ?? parts.settings.port;
  const server = httpListener(ground, { port, url: () => "http://localhost" });
  const sockets = new Sockets(ground, { port, refuse: refuseRaw });
  const stopRechecks = ground.tuning.timers.every(ground.tuning.recheckMs, () => ground.visitors.recheck());
  return {
    handle: (request, response) => void server.emit("request", request, response),
    upgrade: (request, socket, head) => sockets.upgrade(request, socket, head),
    drain: (graceMs) => drain(ground, sockets, graceMs),
    close: async () => {
      stopRechecks();
      void ground.underway.stop();
      ground.underway.abortAll();
      sockets.close();
    },
  };
}

async function drain(ground: Ground, sockets: Sockets, graceMs: number): Promise<void> {
  const { underway, tuning } = ground;
  const idle = underway.stop();
  sockets.drain();
  await new Promise<void>((resolve) => {
    const stopTimer = tuning.timers.after(graceMs, resolve);
    void idle.then(() => {
      stopTimer();
      resolve();
    });
  });
  underway.abortAll();
}

async function close(ground: Ground, sockets: Sockets, server: HttpServer): Promise<void> {
  const isClosed = new Promise<void>((resolve) => server.close(() => resolve()));
  void ground.underway.stop();
  ground.underway.abortAll();
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

/** Where everything is listened at, this machine is the one that is meant. */
export function urlOf(host: string, port: number): string {
  const address = plainAddress(host);
  if (address === "0.0.0.0") return `http://127.0.0.1:${port}`;
  if (address === "0:0:0:0:0:0:0:0") return `http://[::1]:${port}`;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
