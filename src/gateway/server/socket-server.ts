import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ServerOptions, WebSocket } from "ws";
import { WebSocketServer } from "ws";
import type { WireError } from "../../protocol/errors.ts";
import type { CloseReason } from "../../protocol/frames.ts";
import { findHostRefusal } from "./authenticator.ts";
import type { ByteBudget } from "./rate-limits.ts";
import { badHandshake, noSuch, shuttingDown } from "./refusals.ts";
import type { ServerContext } from "./server-context.ts";
import type { Stop } from "./server-options.ts";
import { SocketConnection } from "./socket-connection.ts";

/** `ws` keeps a view of each fragment until the message is complete. Clients that fragment do so at 4 KiB or more. */
const maxFragments = 16 * 1024;
/** Chunks of the network that one frame may come in: 25 MiB in packets of 1460 bytes, with some to spare. */
const maxBufferedChunks = 32 * 1024;
/** The bytes around the text of the largest frame. */
const frameHeader = 14;
/** So many first frames in bytes; whoever goes on sending is cut off instead of being told why. */
const turnedAwayFrames = 4;

/** Options of `ws` that its types do not have yet. */
interface ReceiverLimits {
  readonly closeTimeout: number;
  readonly maxFragments: number;
  readonly maxBufferedChunks: number;
}

export interface SocketServerOptions {
  port(request: IncomingMessage): number;
  /** Answers a request that gets no socket. */
  refuse(socket: Duplex, error: WireError): void;
}

/** Every socket of the server, from its upgrade to its end. */
export class SocketServer {
  readonly #context: ServerContext;
  readonly #options: SocketServerOptions;
  readonly #server: WebSocketServer;
  /** In the order they came. */
  readonly #open = new Set<SocketConnection>();
  readonly #stops: readonly Stop[];

  constructor(context: ServerContext, options: SocketServerOptions) {
    const { frameBytes, closeMs, timers, beatMs, recheckMs } = context.tuning;
    this.#context = context;
    this.#options = options;
    const rules: ServerOptions & ReceiverLimits = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: frameBytes,
      maxFragments,
      maxBufferedChunks,
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
    const address = this.#context.authenticator.addressOf(request);
    this.#server.handleUpgrade(request, socket, head, (ws) => {
      this.#makeRoom();
      const connection = new SocketConnection(ws, socket, this.#context, address);
      this.#open.add(connection);
      ws.once("close", () => this.#open.delete(connection));
      this.#boundFirstFrame(socket as Socket, connection);
      boundUnfinished(ws, socket as Socket, connection, this.#context);
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
    const site = findHostRefusal(request, this.#context.app.settings, this.#options.port(request));
    if (site !== null) return site;
    const [path] = (request.url ?? "").split("?");
    const isSocket = request.headers.upgrade?.toLowerCase() === "websocket";
    if (path !== "/ws" || !isSocket) return noSuch("such place to upgrade at; sockets are opened at /ws");
    return this.#context.pendingRequests.isStopping ? shuttingDown : null;
  }

  /** Whoever says `connect` at once, as clients do, is never the oldest for long. */
  #makeRoom(): void {
    const waiting = [...this.#open].filter((connection) => connection.isWaiting);
    if (waiting.length >= this.#context.tuning.waitingSockets) waiting[0]?.close("connectTooLate");
  }

  /** A stranger's bytes are held until it is let in, so there are few of them, while it is turned away too. */
  #boundFirstFrame(socket: Socket, connection: SocketConnection): void {
    const most = this.#context.tuning.connectBytes + frameHeader;
    let count = 0;
    const take = (chunk: Buffer) => {
      count += chunk.length;
      if (connection.tokenId !== null) socket.off("data", take);
      else if (count > turnedAwayFrames * most) connection.terminate();
      else if (count > most && connection.isWaiting) connection.close("tooLarge");
    };
    socket.on("data", take);
  }

  #each(act: (connection: SocketConnection) => void): void {
    for (const connection of [...this.#open]) act(connection);
  }
}

/** A view of a chunk, and its place in a list. */
const chunkOverhead = 256;
/** A fragment of one byte is a frame of seven, for which `ws` keeps about twenty times as much. */
const fragmentOverhead = 20;
/** A client says `connect` in less. */
const freeBeforeConnect = 4096;
/** What is around the payload of a control frame from a client. */
const controlHeader = 6;

/**
 * Bounds messages that have not all arrived, in memory and time. `ws` tells of complete messages and control frames alone, so
 * whatever arrived since the last message, and is no control frame, belongs to an unfinished one.
 */
function boundUnfinished(
  ws: WebSocket,
  socket: Socket,
  connection: SocketConnection,
  context: ServerContext,
): void {
  const { bodies, unsignedBodies, tuning } = context;
  let [unfinishedBytes, controlBytes] = [0, 0];
  let isComplete = false;
  let held: { readonly pool: ByteBudget; readonly name: string; bytes: number } | null = null;
  let stopTimer: Stop | null = null;
  const settle = () => {
    unfinishedBytes = 0;
    stopTimer?.();
    stopTimer = null;
    held?.pool.give(held.name, held.bytes);
    held = null;
  };
  // Nothing more is read, so nothing more is held while the answer is sent.
  const refuse = (reason: CloseReason) => {
    connection.close(reason);
    ws.pause();
  };
  const charge = (length: number): boolean => {
    const { tokenId } = connection;
    const counted = Math.min(length, Math.max(0, unfinishedBytes - freeBeforeConnect));
    const bytes = tokenId === null ? counted * fragmentOverhead : length + chunkOverhead;
    held ??= { pool: tokenId === null ? unsignedBodies : bodies, name: tokenId ?? "all", bytes: 0 };
    const isHeld = held.pool.take(held.name, bytes);
    if (isHeld) held.bytes += bytes;
    return isHeld;
  };
  const control = (data: Buffer) => {
    controlBytes += data.length + controlHeader;
  };
  ws.on("ping", control).on("pong", control);
  ws.on("message", () => {
    isComplete = true;
    settle();
  });
  ws.once("close", settle);
  // Behind the listener of `ws`, which has made messages of this chunk by now.
  socket.on("data", (chunk: Buffer) => {
    unfinishedBytes = Math.max(0, unfinishedBytes + chunk.length - controlBytes);
    controlBytes = 0;
    if (isComplete || unfinishedBytes === 0) {
      isComplete = false;
      return settle();
    }
    if (!charge(chunk.length)) return refuse("tooMuchUnfinished");
    stopTimer ??= tuning.timers.after(tuning.requestMs, () => refuse("messageTooLate"));
  });
}
