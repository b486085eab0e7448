import type { WebSocket } from "ws";
import type { Steps } from "../../core/slices.ts";
import { atOnce, Slices, sliceBytes } from "../../core/slices.ts";
import type { WireError } from "../../protocol/errors.ts";
import type { CloseReason, ReadRequest, RequestFrame, ResponseFrame } from "../../protocol/frames.ts";
import { closeCodes, readRequestInSteps } from "../../protocol/frames.ts";
import { isTooDeep } from "../../protocol/nesting.ts";
import type { Principal } from "../auth/principal.ts";
import { RequestRefusedError } from "../methods/dispatch.ts";
import { helloPayload, readConnect } from "./connect-frame.ts";
import { malformed, rateLimited, shuttingDown, wrongToken } from "./refusals.ts";
import type { ServerContext } from "./server-context.ts";
import type { Stop } from "./server-options.ts";
import { SocketRequests } from "./socket-requests.ts";

/** Output is flushed once it exceeds this size. */
const gatheredBytes = 64 * 1024;

type State = "waiting" | "checking" | "held" | "open" | "over";

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
  #stopWatching: (() => void) | null = null;
  #isAlive = true;
  /** Frames that have not been processed yet. The first one is being processed. */
  readonly #unread: Buffer[] = [];
  #gathering: NodeJS.Immediate | null = null;
  /** The bytes of events in the output. Responses do not count, because a client that reads slowly has requested them. */
  #eventBytes = 0;

  constructor(ws: WebSocket, wire: Wire, context: ServerContext, address: string) {
    this.#ws = ws;
    this.#wire = wire;
    this.#context = context;
    this.#address = address;
    this.#requests = new SocketRequests(context, {
      send: (text) => this.#sendEvent(text),
      respond: (text) => this.#send(text),
      // After a flush, the callbacks of `send` run later than the bytes leave.
      backlog: () => Math.min(this.#eventBytes, ws.bufferedAmount),
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

  #live(): void {
    this.#isAlive = true;
  }

  #receive(data: Buffer, isBinary: boolean): void {
    this.#live();
    if (this.#isDeaf) return;
    if (isBinary) return void this.close("badFrame");
    if (this.#state === "waiting" && data.length > this.#context.tuning.connectBytes) {
      return void this.close("tooLarge");
    }
    this.#unread.push(data);
    if (this.#unread.length === 1) void this.#readAll();
    else if (!this.#ws.isPaused) this.#ws.pause();
  }

  /** Later frames wait for the first one, so that requests start in the order in which they were sent. */
  async #readAll(): Promise<void> {
    for (let next = this.#unread[0]; next !== undefined; next = this.#unread[0]) {
      const isLong = next.length > sliceBytes;
      if (isLong) this.#ws.pause();
      const read = isLong ? await new Slices().run(readFrame(next)) : atOnce(readFrame(next));
      if (this.#isDeaf) return;
      await this.#take(read, next.length);
      if (this.#isDeaf) return;
      this.#unread.shift();
    }
    if (this.#ws.isPaused) this.#ws.resume();
  }

  /** Whether frames from the client are ignored. */
  get #isDeaf(): boolean {
    return this.#state === "over" || this.#state === "held";
  }

  /** Ignores all frames from now on. Reading continues so that the client's side of the closing handshake arrives. */
  #stopReading(state: "held" | "over"): void {
    this.#state = state;
    this.#unread.length = 0;
    if (this.#ws.isPaused) this.#ws.resume();
  }

  /** `read` is `null` if the frame is nested too deeply. */
  async #take(read: ReadRequest | null, bytes: number): Promise<void> {
    if (read === null) return void this.close("badFrame");
    if (!("frame" in read)) return void this.#unreadable(read.id, read.problem);
    if (this.#principal === null) await this.#connect(read.frame);
    else await this.#request(read.frame, bytes, this.#principal);
  }

  /**
   * A malformed frame with an ID gets an error response. A frame without an ID means that the client does not use this
   * protocol, so the socket is closed.
   */
  #unreadable(id: string | null, problem: string): void {
    if (id !== null) this.#refuse(id, malformed(problem));
    if (id === null || this.#state === "waiting") this.close("badFrame");
  }

  async #connect(frame: RequestFrame): Promise<void> {
    this.#stopWaiting();
    const read = readConnect(frame);
    if ("refusal" in read) return void this.#turnAway(frame.id, read.refusal, read.close);
    this.#state = "checking";
    this.#ws.pause();
    try {
      const principal = await this.#context.authenticator.known(read.params.auth.token);
      if (this.#isDeaf) return;
      if (principal === null) void this.#wrongToken(frame.id);
      else this.#welcome(frame.id, principal, read.protocol);
    } catch (error) {
      const refusal = this.#context.app.dispatch.refusal(null, "connect", error);
      this.#turnAway(frame.id, refusal, refusal.code === "rate_limited" ? "tooManySockets" : "internal");
    }
  }

  async #wrongToken(id: string): Promise<void> {
    this.#stopReading("held");
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
    this.#stopWatching = this.#context.tokenWatch.add(principal, () => this.close("revoked"));
    const payload = helloPayload(principal, protocol, this.#context.app.version);
    this.#answer({ type: "res", id, ok: true, payload });
  }

  #turnAway(id: string, refusal: WireError, reason: CloseReason): void {
    this.#refuse(id, refusal);
    this.close(reason);
  }

  async #request(frame: RequestFrame, bytes: number, { tokenId }: Principal): Promise<void> {
    try {
      if (this.#context.pendingRequests.isStopping) throw new RequestRefusedError(shuttingDown);
      // Read again for every request so that a revoked token stops working immediately.
      const principal = await this.#context.app.tokens.current(tokenId);
      if (this.#isDeaf) return;
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

  #sendEvent(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.#eventBytes += bytes;
    this.#send(text, () => {
      this.#eventBytes -= bytes;
    });
  }

  /** Disconnects a client that does not read its responses. Calls `onSent` once the text has been written. */
  #send(text: string, onSent: () => void = () => undefined): void {
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    if (this.#ws.bufferedAmount > this.#context.tuning.heldBytes) return void this.terminate();
    this.#gather();
    this.#ws.send(text, onSent);
    // Buffered output alone must not make a client look slow.
    if (this.#ws.bufferedAmount > gatheredBytes) this.#flush();
  }

  /** Combines the frames from one event loop iteration into one write, because every piece of text is a frame. */
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
    this.#stopReading("over");
    this.#stopWaiting();
    this.#requests.end();
    this.#stopWatching?.();
    this.#release?.();
    this.#release = null;
  }
}
