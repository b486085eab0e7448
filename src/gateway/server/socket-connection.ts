import type { WebSocket } from "ws";
import type { Steps } from "../../core/slices.ts";
import { atOnce, Slices, sliceBytes } from "../../core/slices.ts";
import { checkParams } from "../../protocol/check-params.ts";
import type { WireError } from "../../protocol/errors.ts";
import { invalidRequest } from "../../protocol/errors.ts";
import { eventNames } from "../../protocol/events.ts";
import type {
  CloseReason,
  ConnectParams,
  HelloPayload,
  ReadRequest,
  RequestFrame,
  ResponseFrame,
} from "../../protocol/frames.ts";
import {
  ConnectSchema,
  closeCodes,
  commonProtocol,
  protocolVersion,
  readRequestInSteps,
  wireLimits,
} from "../../protocol/frames.ts";
import { methodsFor } from "../../protocol/method-table.ts";
import { isTooDeep } from "../../protocol/nesting.ts";
import type { Principal } from "../auth/principal.ts";
import { everyUser } from "../auth/principal.ts";
import { RequestRefusedError } from "../methods/dispatch.ts";
import { malformed, rateLimited, shuttingDown, wrongToken } from "./refusals.ts";
import type { ServerContext } from "./server-context.ts";
import type { Stop } from "./server-options.ts";
import { SocketRequests } from "./socket-requests.ts";

/** Output is flushed once it exceeds this size. */
const gatheredBytes = 64 * 1024;

type State = "waiting" | "held" | "open" | "over";

/** The stream that frames are written to. */
export interface Wire {
  cork(): void;
  uncork(): void;
}

/** Returns `null` if the frame is nested too deeply. */
function* readFrame(data: Buffer): Steps<ReadRequest | null> {
  if (yield* isTooDeep(data)) return null;
  return yield* readRequestInSteps(data.toString("utf8"));
}

/**
 * One socket. The client sends `connect` first, followed by requests. Each request gets one response. Events are sent
 * in between.
 */
export class SocketConnection {
  readonly #ws: WebSocket;
  readonly #wire: Wire;
  readonly #context: ServerContext;
  readonly #address: string;
  readonly #requests: SocketRequests;
  readonly #stopWaiting: Stop;
  #state: State = "waiting";
  #principal: Principal | null = null;
  #release: (() => void) | null = null;
  #isAlive = true;
  /** Frames that have not been parsed yet. The first one is being parsed. */
  readonly #unread: Buffer[] = [];
  #gathering: NodeJS.Immediate | null = null;

  constructor(ws: WebSocket, wire: Wire, context: ServerContext, address: string) {
    this.#ws = ws;
    this.#wire = wire;
    this.#context = context;
    this.#address = address;
    this.#requests = new SocketRequests(context, {
      send: (text) => this.#send(text),
      backlog: () => ws.bufferedAmount,
      drop: () => this.close("slowReader"),
      answer: (frame) => this.#answer(frame),
      idle: () => this.closeIfStopping(),
    });
    const { timers, connectMs } = context.tuning;
    this.#stopWaiting = timers.after(connectMs, () => this.close("connectTooLate"));
    ws.on("message", (data: Buffer, isBinary) => this.#receive(data, isBinary));
    ws.on("pong", () => this.#live());
    ws.on("error", (error) => context.app.log("info", "A socket failed", { error: error.message }));
    ws.once("close", () => this.#end());
  }

  get isWaiting(): boolean {
    return this.#state === "waiting";
  }

  /** The token that the client connected with, or `null` before `connect`. */
  get tokenId(): string | null {
    return this.#principal?.tokenId ?? null;
  }

  close(reason: CloseReason): void {
    if (this.#state === "over") return;
    this.#end();
    const { code, reason: text } = closeCodes[reason];
    this.#ws.close(code, text);
  }

  /** Closes the socket without waiting for pending output. */
  terminate(): void {
    this.#end();
    this.#ws.terminate();
  }

  closeIfStopping(): void {
    if (this.#context.pendingRequests.isStopping && this.#requests.size === 0) this.close("goingAway");
  }

  /** Pings the client. A client that has not answered the previous ping is disconnected. */
  beat(): void {
    if (!this.#isAlive) return void this.terminate();
    this.#isAlive = false;
    if (this.#ws.readyState === this.#ws.OPEN) this.#ws.ping();
  }

  recheck(): void {
    if (this.#principal !== null && this.#context.authenticator.isOver(this.#principal))
      this.close("revoked");
  }

  #live(): void {
    this.#isAlive = true;
  }

  #receive(data: Buffer, isBinary: boolean): void {
    this.#live();
    if (this.#state === "over" || this.#state === "held") return;
    if (isBinary) return void this.close("badFrame");
    if (this.#state === "waiting" && data.length > this.#context.tuning.connectBytes) {
      return void this.close("tooLarge");
    }
    if (this.#unread.length > 0 || data.length > sliceBytes) return void this.#readLater(data);
    this.#take(atOnce(readFrame(data)), data.length);
  }

  /** Parses a long frame in chunks. Later frames wait so that requests start in the order in which they were sent. */
  async #readLater(data: Buffer): Promise<void> {
    if (this.#unread.push(data) > 1) return;
    this.#ws.pause();
    for (;;) {
      const next = this.#unread[0];
      if (next === undefined) break;
      const read = await new Slices().run(readFrame(next));
      if (this.#state === "over") return;
      this.#take(read, next.length);
      this.#unread.shift();
    }
    this.#ws.resume();
  }

  /** `read` is `null` if the frame is nested too deeply. */
  #take(read: ReadRequest | null, bytes: number): void {
    if (read === null) return void this.close("badFrame");
    if (!("frame" in read)) return void this.#unreadable(read.id, read.problem);
    if (this.#principal === null) this.#connect(read.frame);
    else this.#request(read.frame, bytes, this.#principal);
  }

  /**
   * A malformed frame with an ID gets an error response. A frame without an ID means that the client does not use this
   * protocol, so the socket is closed.
   */
  #unreadable(id: string | null, problem: string): void {
    if (id !== null) this.#refuse(id, malformed(problem));
    if (id === null || this.#state === "waiting") this.close("badFrame");
  }

  #connect(frame: RequestFrame): void {
    this.#stopWaiting();
    const read = readConnect(frame);
    if ("refusal" in read) return void this.#turnAway(frame.id, read.refusal, read.close);
    try {
      const principal = this.#context.authenticator.known(read.params.auth.token);
      if (principal === null) void this.#wrongToken(frame.id);
      else this.#welcome(frame.id, principal, read.protocol);
    } catch (error) {
      const refusal = this.#context.app.dispatch.refusal(null, "connect", error);
      this.#turnAway(frame.id, refusal, refusal.code === "rate_limited" ? "tooManySockets" : "internal");
    }
  }

  async #wrongToken(id: string): Promise<void> {
    this.#state = "held";
    const refusal = await this.#context.authenticator.wrong(this.#address, wrongToken);
    this.#turnAway(id, refusal, "unauthorized");
  }

  #welcome(id: string, principal: Principal, protocol: number): void {
    if (this.#context.pendingRequests.isStopping) return void this.#turnAway(id, shuttingDown, "goingAway");
    this.#release = this.#context.sockets.open(principal.tokenId);
    if (this.#release === null) {
      const refusal = rateLimited("This token has too many sockets and streams", 1000);
      return void this.#turnAway(id, refusal, "tooManySockets");
    }
    this.#state = "open";
    this.#principal = principal;
    const payload = helloPayload(principal, protocol, this.#context.app.version);
    this.#answer({ type: "res", id, ok: true, payload });
  }

  #turnAway(id: string, refusal: WireError, reason: CloseReason): void {
    this.#refuse(id, refusal);
    this.close(reason);
  }

  #request(frame: RequestFrame, bytes: number, { tokenId }: Principal): void {
    try {
      if (this.#context.pendingRequests.isStopping) throw new RequestRefusedError(shuttingDown);
      // Read again for every request so that a revoked token stops working immediately.
      const principal = this.#context.app.tokens.current(tokenId);
      if (principal === null) return void this.close("revoked");
      this.#context.authenticator.take(principal);
      this.#requests.begin(frame, bytes, principal);
    } catch (error) {
      this.#refuse(frame.id, this.#context.app.dispatch.refusal(this.#principal, frame.method, error));
    }
  }

  #refuse(id: string, error: WireError): void {
    this.#answer({ type: "res", id, ok: false, error });
  }

  #answer(frame: ResponseFrame): void {
    this.#send(JSON.stringify(frame));
  }

  /** Disconnects a client that does not read its responses. */
  #send(text: string): void {
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    if (this.#ws.bufferedAmount > this.#context.tuning.heldBytes) return void this.terminate();
    this.#gather();
    this.#ws.send(text);
    // Buffered output alone must not make a client look slow.
    if (this.#ws.bufferedAmount > gatheredBytes) this.#flush();
  }

  /** Sends the frames from one turn of the event loop in one write because every piece of streamed text is a frame. */
  #gather(): void {
    if (this.#gathering !== null) return;
    this.#wire.cork();
    this.#gathering = setImmediate(() => this.#flush());
  }

  #flush(): void {
    if (this.#gathering === null) return;
    clearImmediate(this.#gathering);
    this.#gathering = null;
    this.#wire.uncork();
  }

  #end(): void {
    this.#state = "over";
    this.#stopWaiting();
    this.#requests.end();
    this.#release?.();
    this.#release = null;
  }
}

export type ReadConnect =
  | { readonly params: ConnectParams; readonly protocol: number }
  | { readonly refusal: WireError; readonly close: CloseReason };

export function readConnect({ method, params }: RequestFrame): ReadConnect {
  if (method !== "connect") {
    return { refusal: malformed("The first frame must be a connect request"), close: "badFrame" };
  }
  const checked = checkParams(ConnectSchema, params);
  if ("problems" in checked) return { refusal: invalidRequest(checked.problems), close: "badFrame" };
  const protocol = commonProtocol(checked.params.protocol);
  if (protocol !== null) return { params: checked.params, protocol };
  const refusal = malformed(`This gateway supports only protocol version ${protocolVersion}`);
  return { refusal, close: "noCommonProtocol" };
}

export function helloPayload(principal: Principal, protocol: number, version: string): HelloPayload {
  const { tokenId, scopes, user } = principal;
  const allUsers = user === everyUser;
  return {
    protocol,
    server: { name: "skein", version },
    methods: methodsFor({ scopes, allUsers }),
    events: [...eventNames, "gap"],
    limits: wireLimits,
    scopes: [...scopes],
    tokenId,
    ...(allUsers || user === null ? {} : { userId: user }),
    allUsers,
  };
}
