import type { AddressInfo } from "node:net";
import type { WebSocket } from "ws";
import { WebSocketServer } from "ws";

const limits = {
  frameBytes: 25 * 1024 * 1024,
  connectBytes: 64 * 1024,
  connectMs: 10_000,
  requestsPerSecond: 200,
  socketsPerToken: 64,
  eventsKept: 10_000,
};

/**
 * The other end of a client's sockets, controlled by a test. It can answer, disconnect, send garbage or stay silent.
 */

export interface PeerRequest {
  readonly id: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly socket: WebSocket;
  ok(payload: unknown): void;
  fail(error: Readonly<Record<string, unknown>>): void;
}

export const goodToken = "skein_good";

export class GatewayPeer {
  readonly requests: PeerRequest[] = [];
  readonly sockets = new Set<WebSocket>();
  /** The number of times `connect` was sent. */
  connects = 0;
  /** Handles a request, which is already in `requests`. */
  answer: (request: PeerRequest) => void = ({ ok }) => ok({});
  greet: (request: PeerRequest) => void = (request) => this.hello(request);
  frameBytes: number = limits.frameBytes;
  #server: WebSocketServer | null = null;

  async listen(port = 0): Promise<string> {
    const server = new WebSocketServer({ host: "127.0.0.1", port, path: "/ws" });
    await new Promise((resolve) => server.once("listening", resolve));
    this.#server = server;
    server.on("connection", (socket) => this.#connected(socket));
    return this.url;
  }

  get url(): string {
    const { port } = (this.#server as WebSocketServer).address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  hello({ params, ok, socket, fail }: PeerRequest): void {
    const { token } = params.auth as { readonly token: string };
    if (token !== goodToken) {
      fail({ code: "unauthorized", message: "The token is not valid." });
      socket.close(4401);
      return;
    }
    ok({
      protocol: 1,
      server: { name: "peer", version: "1.0.0" },
      methods: ["sessions.list"],
      events: ["run.ended"],
      limits: { ...limits, frameBytes: this.frameBytes },
      scopes: ["read"],
      allUsers: false,
    });
  }

  /** Breaks every socket without sending a close frame. */
  drop(): void {
    for (const socket of this.sockets) socket.terminate();
  }

  closeAll(code: number): void {
    for (const socket of this.sockets) socket.close(code);
  }

  /** Returns a method's requests, in order of arrival. */
  asked(method: string): PeerRequest[] {
    return this.requests.filter((each) => each.method === method);
  }

  async close(): Promise<void> {
    this.drop();
    const server = this.#server;
    if (server !== null) await new Promise((resolve) => server.close(resolve));
    this.#server = null;
  }

  #connected(socket: WebSocket): void {
    this.sockets.add(socket);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => undefined);
    socket.on("message", (data) => {
      const { id, method, params } = JSON.parse(String(data));
      const send = (answer: object) => socket.send(JSON.stringify({ type: "res", id, ...answer }));
      const request: PeerRequest = {
        id,
        method,
        params,
        socket,
        ok: (payload) => send({ ok: true, payload }),
        fail: (error) => send({ ok: false, error }),
      };
      if (method === "connect") {
        this.connects += 1;
        this.greet(request);
        return;
      }
      this.requests.push(request);
      this.answer(request);
    });
  }
}

/** An event as a frame. */
export function eventFrame(event: string, seq: number, payload: object = {}): string {
  return JSON.stringify({ type: "event", event, seq, payload });
}
