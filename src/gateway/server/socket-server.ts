import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ServerOptions, WebSocket } from "ws";
import { WebSocketServer } from "ws";
import type { WireError } from "../../protocol/errors.ts";
import type { CloseReason } from "../../protocol/frames.ts";
import { findHostRefusal } from "./authenticator.ts";
import type { ByteBudget } from "./rate-limits.ts";
import { badHandshake, noSuch, notForClients, shuttingDown } from "./refusals.ts";
import { servedPath } from "./router.ts";
import type { ServerContext } from "./server-context.ts";
import type { Stop } from "./server-options.ts";
import { SocketConnection } from "./socket-connection.ts";

/** `ws` keeps a view of each fragment until the message is complete. Clients that fragment do so at 4 KiB or more. */
const maxFragments = 16 * 1024;
/**
 * The maximum number of network chunks per frame. This is enough for 25 MiB in packets of 1460 bytes, with some to
 * spare.
 */
const maxBufferedChunks = 32 * 1024;
/** The size of the largest frame header. */
const frameHeader = 14;
/** A rejected client that keeps sending is disconnected after this multiple of the size limit for a first frame. */
const turnedAwayFrames = 4;

/** `ws` options that its types lack. */
interface ReceiverLimits {
  readonly closeTimeout: number;
  readonly maxFragments: number;
  readonly maxBufferedChunks: number;
}

export interface SocketServerOptions {
  port(request: IncomingMessage): number;
  /** Responds to a rejected upgrade request. */
  refuse(socket: Duplex, error: WireError): void;
}

/** Every socket on the server, from its upgrade until it is closed. */
export class SocketServer {
  readonly #context: ServerContext;
  readonly #options: SocketServerOptions;
  readonly #server: WebSocketServer;
  /** In order of arrival. */
  readonly #open = new Set<SocketConnection>();
  readonly #stopBeats: Stop;

  constructor(context: ServerContext, options: SocketServerOptions) {
    const { frameBytes, closeMs, timers, beatMs } = context.tuning;
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
    this.#stopBeats = timers.every(beatMs, () => this.#each((connection) => connection.beat()));
  }

  get size(): number {
    return this.#open.size;
  }

  /** Accepts upgrades only for `/ws`, and only if the request's `Host` and `Origin` are allowed. */
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

  /** Closes idle sockets immediately, and the others after their last response. */
  drain(): void {
    this.#each((connection) => connection.closeIfStopping());
  }

  close(): void {
    this.#stopBeats();
    this.#each((connection) => connection.terminate());
    this.#server.close();
  }

  #refusal(request: IncomingMessage): WireError | null {
    const { settings } = this.#context.app;
    const site = findHostRefusal(request, settings, this.#options.port(request));
    if (site !== null) return site;
    if (!settings.servesClients) return notForClients;
    const path = servedPath(request, settings.basePath);
    const isSocket = request.headers.upgrade?.toLowerCase() === "websocket";
    if (path !== "/ws" || !isSocket) return noSuch("such upgrade path; open sockets at /ws");
    return this.#context.pendingRequests.isStopping ? shuttingDown : null;
  }

  /**
   * Closes the oldest socket without a `connect` if there are too many. A client that sends `connect` promptly is
   * rarely the oldest.
   */
  #makeRoom(): void {
    const waiting = [...this.#open].filter((connection) => connection.isWaiting);
    if (waiting.length >= this.#context.tuning.waitingSockets) waiting[0]?.close("connectTooLate");
  }

  /** Bytes received before authentication stay in memory, so they are limited even while a client is being rejected. */
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

/** The memory for a view of a chunk and its slot in a list. */
const chunkOverhead = 256;
/** A one-byte fragment arrives as a frame of seven bytes, for which `ws` uses about twenty times as much memory. */
const fragmentOverhead = 20;
/** `connect` fits in this many bytes. */
const freeBeforeConnect = 4096;
/** The header size of a control frame from a client. */
const controlHeader = 6;

/**
 * Limits the memory and time spent on messages that have not fully arrived. `ws` reports only complete messages and
 * control frames, so all other bytes since the last message belong to an unfinished message.
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
  // Nothing more is read, so memory use does not grow while the close frame is being sent.
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
  // Runs after the `ws` listener, which has already processed this chunk.
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
