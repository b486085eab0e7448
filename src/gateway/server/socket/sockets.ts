import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ServerOptions } from "ws";
import { WebSocketServer } from "ws";
import type { WireError } from "../../../protocol/errors.ts";
import type { Ground } from "../door/ground.ts";
import { badHandshake, noSuch, stopping } from "../door/refusals.ts";
import { siteRefusal } from "../door/sites.ts";
import type { Stop } from "../door/tuning.ts";
import { Connection } from "./connection.ts";

/** The bytes around the text of the largest frame. */
const frameHeader = 14;
/** So many first frames in bytes; whoever goes on sending is cut off instead of being told why. */
const turnedAwayFrames = 4;

export interface SocketsOptions {
  port(): number;
  /** Answers a request that gets no socket. */
  refuse(socket: Duplex, error: WireError): void;
}

/** Every socket of the server, from its upgrade to its end. */
export class Sockets {
  readonly #ground: Ground;
  readonly #options: SocketsOptions;
  readonly #server: WebSocketServer;
  /** In the order they came. */
  readonly #open = new Set<Connection>();
  readonly #stops: readonly Stop[];

  constructor(ground: Ground, options: SocketsOptions) {
    const { frameBytes, closeMs, timers, beatMs, recheckMs } = ground.tuning;
    this.#ground = ground;
    this.#options = options;
    const rules: ServerOptions & { readonly closeTimeout: number } = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: frameBytes,
      closeTimeout: closeMs,
    };
    this.#server = new WebSocketServer(rules);
    this.#server.on("wsClientError", ({ message }, socket) => options.refuse(socket, badHandshake(message)));
    this.#stops = [
      timers.every(beatMs, () => this.#each((connection) => connection.beat())),
      timers.every(recheckMs, () => this.#each((connection) => connection.recheck())),
    ];
  }

  get size(): number {
    return this.#open.size;
  }

  /** An upgrade, which only `/ws` has, and only from where requests may come. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    const refusal = this.#refusal(request);
    if (refusal !== null) return void this.#options.refuse(socket, refusal);
    const address = this.#ground.door.addressOf(request);
    this.#server.handleUpgrade(request, socket, head, (ws) => {
      this.#makeRoom();
      const connection = new Connection(ws, socket, this.#ground, address);
      this.#open.add(connection);
      ws.once("close", () => this.#open.delete(connection));
      this.#boundFirstFrame(socket as Socket, connection);
    });
  }

  /** Those with nothing under way go at once, the others with their last answer. */
  drain(): void {
    this.#each((connection) => connection.closeIfStopping());
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#each((connection) => connection.terminate());
    this.#server.close();
  }

  #refusal(request: IncomingMessage): WireError | null {
    const site = siteRefusal(request, this.#ground.parts.settings, this.#options.port());
    if (site !== null) return site;
    const [path] = (request.url ?? "").split("?");
    const isSocket = request.headers.upgrade?.toLowerCase() === "websocket";
    if (path !== "/ws" || !isSocket) return noSuch("such place to upgrade at; sockets are opened at /ws");
    return this.#ground.underway.isStopping ? stopping : null;
  }

  /** Whoever says `connect` at once, as clients do, is never the oldest for long. */
  #makeRoom(): void {
    const waiting = [...this.#open].filter((connection) => connection.isWaiting);
    if (waiting.length >= this.#ground.tuning.waitingSockets) waiting[0]?.close("connectTooLate");
  }

  /** A stranger's bytes are held until it is let in, so there are few of them, while it is turned away too. */
  #boundFirstFrame(socket: Socket, connection: Connection): void {
    const most = this.#ground.tuning.connectBytes + frameHeader;
    let count = 0;
    const take = (chunk: Buffer) => {
      count += chunk.length;
      if (connection.isIn) socket.off("data", take);
      else if (count > turnedAwayFrames * most) connection.terminate();
      else if (count > most && connection.isWaiting) connection.close("tooLarge");
    };
    socket.on("data", take);
  }

  #each(act: (connection: Connection) => void): void {
    for (const connection of [...this.#open]) act(connection);
  }
}
