import { once } from "node:events";
import { Socket } from "node:net";
import { afterEach, expect } from "vitest";
import { WebSocket } from "ws";
import type { TokenRequest } from "../../src/gateway/auth/tokens.ts";
import type { EventSelection } from "../../src/gateway/events/event-selection.ts";
import type { EventHub, EventSink } from "../../src/gateway/events/subscriber.ts";
import type { Handlers } from "../../src/gateway/methods/dispatch.ts";
import { Dispatch } from "../../src/gateway/methods/dispatch.ts";
import { createServer } from "../../src/gateway/server/create-server.ts";
import type { Server, ServerOptions, Timers, Tuning } from "../../src/gateway/server/server-options.ts";
import type { ResponseFrame } from "../../src/protocol/frames.ts";
import { TokenBooks } from "./token-books.ts";

/** Long enough for an expected event, even on a busy machine. */
export function eventually<T>(act: () => T) {
  return expect.poll(act, { timeout: 150_000, interval: 20 });
}

/** Timers that fire when a test requests it. */
export class HandTimers implements Timers {
  readonly #rows = new Set<{ ms: number; act: () => void; isOnce: boolean }>();

  after(ms: number, act: () => void) {
    return this.#add({ ms, act, isOnce: true });
  }

  every(ms: number, act: () => void) {
    return this.#add({ ms, act, isOnce: false });
  }

  /** Returns the number of timers with exactly this delay. */
  count(ms: number): number {
    return [...this.#rows].filter((row) => row.ms === ms).length;
  }

  /** Fires every timer with exactly this delay. */
  fire(ms: number): void {
    for (const row of [...this.#rows].filter((each) => each.ms === ms)) {
      if (row.isOnce) this.#rows.delete(row);
      row.act();
    }
  }

  /** Like `fire`, but for every one-shot timer. */
  fireAllOnce(): void {
    for (const { ms } of [...this.#rows].filter(({ isOnce }) => isOnce)) this.fire(ms);
  }

  #add(row: { ms: number; act: () => void; isOnce: boolean }) {
    this.#rows.add(row);
    return () => void this.#rows.delete(row);
  }
}

/** A hub whose events are created by a test. */
export class HandHub implements EventHub {
  seq = 0;
  readonly open = new Set<{ wanted: EventSelection; sink: EventSink; after: number | undefined }>();

  get size(): number {
    return this.open.size;
  }

  subscribe(_principal: unknown, wanted: EventSelection, sink: EventSink, after?: number) {
    const row = { wanted, sink, after };
    this.open.add(row);
    for (let seq = (after ?? this.seq) + 1; seq <= this.seq; seq += 1)
      sink.send(frameText(seq), seq, "run.queued");
    return { seq: this.seq, close: () => void this.open.delete(row) };
  }

  emit(payload: unknown = {}): void {
    this.seq += 1;
    const text = frameText(this.seq, payload);
    for (const { sink } of [...this.open]) sink.send(text, this.seq, "run.queued");
  }
}

function frameText(seq: number, payload: unknown = {}): string {
  return JSON.stringify({ type: "event", event: "run.queued", payload, seq });
}

export interface GatewayOptions {
  readonly handlers?: Partial<Handlers>;
  readonly parts?: Partial<ServerOptions>;
  readonly tuning?: Partial<Tuning>;
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
}

/** A real server on loopback, with the test's handlers, timers and events. */
export class TestGateway {
  readonly books = new TokenBooks();
  readonly timers = new HandTimers();
  readonly hub = new HandHub();
  readonly log: LogLine[] = [];
  readonly #sockets: WebSocket[] = [];
  readonly #raw: Socket[] = [];
  server!: Server;
  admin = "";

  static async start({ handlers = {}, parts = {}, tuning = {} }: GatewayOptions = {}): Promise<TestGateway> {
    const gateway = new TestGateway();
    const scopes = ["read", "write", "tools", "admin"] as const;
    gateway.admin = await gateway.token({ name: "admin", scopes, user: "*" });
    let errors = 0;
    const { books, hub, log } = gateway;
    const dispatch = new Dispatch({
      handlers: () => handlers as Handlers,
      newErrorId: () => `e-${++errors}`,
      report: (errorId, method, error) =>
        log.push({ level: "error", message: method, fields: { errorId, error } }),
    });
    gateway.server = await createServer(
      {
        version: "1.2.3",
        settings: {
          host: "127.0.0.1",
          port: 0,
          isExposed: false,
          allowedHosts: [],
          trustProxy: [],
          basePath: "",
          servesClients: true,
          consoleFolder: null,
        },
        dispatch,
        hub,
        tokens: books.tokens,
        clock: { now: () => books.now },
        exchange: async () => null,
        webhook: () => null,
        mcp: async () => new Response(null, { status: 204 }),
        wanted: async (params, _principal, userId) => ({
          keys: params.keys === undefined ? null : new Set(params.keys),
          events: params.events ?? [],
          of: { userId },
          agentId: params.agentId ?? null,
        }),
        metrics: async () => ({ contentType: "text/plain; version=0.0.4", body: "up 1\n" }),
        problems: async () => [],
        log: (level, message, fields) => log.push({ level, message, fields }),
        ...parts,
      },
      { timers: gateway.timers, ...tuning },
    );
    return gateway;
  }

  get port(): number {
    return Number(new URL(this.server.url).port);
  }

  async token(request: TokenRequest): Promise<string> {
    return (await this.books.tokens.create(request, null)).secret;
  }

  rpc(
    method: string,
    params?: unknown,
    token: string = this.admin,
    init: RequestInit = {},
  ): Promise<Response> {
    return this.get(`/rpc/${method}`, token, {
      method: "POST",
      ...(params === undefined ? {} : { body: JSON.stringify(params) }),
      ...init,
      headers: { "content-type": "application/json", ...(init.headers as Record<string, string>) },
    });
  }

  get(path: string, token: string | null = this.admin, init: RequestInit = {}): Promise<Response> {
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    const headers = { ...authorization, ...(init.headers as Record<string, string>) };
    return fetch(`${this.server.url}${path}`, { ...init, headers });
  }

  /** An open socket that has sent nothing yet. */
  async socket(headers: Readonly<Record<string, string>> = {}): Promise<TestSocket> {
    const ws = new WebSocket(`${this.server.url.replace("http", "ws")}/ws`, { headers });
    this.#sockets.push(ws);
    const socket = new TestSocket(ws);
    await once(ws, "open");
    return socket;
  }

  /** A socket that has sent `connect`. */
  async connected(token: string = this.admin): Promise<TestSocket> {
    const socket = await this.socket();
    await socket.request("connect", connectParams(token));
    return socket;
  }

  /** Sends raw bytes and returns everything received until the other side closes the connection. */
  async raw(bytes: string | null): Promise<{ readonly socket: Socket; readonly text: Promise<string> }> {
    const socket = new Socket();
    this.#raw.push(socket);
    socket.connect(this.port, "127.0.0.1");
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => void chunks.push(Buffer.from(chunk))).on("error", () => socket.destroy());
    const text = once(socket, "close").then(() => Buffer.concat(chunks).toString("utf8"));
    await once(socket, "connect");
    if (bytes !== null) socket.write(bytes);
    return { socket, text };
  }

  async close(): Promise<void> {
    for (const ws of this.#sockets) ws.terminate();
    for (const socket of this.#raw) socket.destroy();
    await this.server.close();
  }
}

export function connectParams(token: string): object {
  return { protocol: { min: 1, max: 1 }, auth: { token }, client: { name: "test" } };
}

interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly seq?: number;
}

/** The client's end of a socket. */
export class TestSocket {
  readonly ws: WebSocket;
  /** Every frame in order of arrival. */
  readonly frames: Frame[] = [];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  readonly #waiting = new Map<string, (frame: ResponseFrame) => void>();
  #ids = 0;

  constructor(ws: WebSocket) {
    this.ws = ws;
    this.closed = new Promise((resolve) =>
      ws.on("close", (code, reason) => resolve({ code, reason: reason.toString() })),
    );
    ws.on("error", () => undefined);
    ws.on("message", (data) => {
      const frame = JSON.parse(String(data)) as Frame;
      this.frames.push(frame);
      if (frame.type !== "res") return;
      this.#waiting.get(frame.id ?? "")?.(frame as ResponseFrame);
      this.#waiting.delete(frame.id ?? "");
    });
  }

  request(method: string, params?: unknown): Promise<ResponseFrame> {
    this.#ids += 1;
    const id = `r${this.#ids}`;
    this.ws.send(JSON.stringify({ type: "req", id, method, ...(params === undefined ? {} : { params }) }));
    return this.answerTo(id);
  }

  /** Returns the response to a frame that the test sends itself. */
  answerTo(id: string): Promise<ResponseFrame> {
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  events(): readonly number[] {
    return this.frames.filter(({ type }) => type === "event").map(({ seq }) => seq ?? -1);
  }
}

/** Starts gateways for the tests in a file. Each gateway is closed after its test. */
export function gatewayStarter(): (options?: GatewayOptions) => Promise<TestGateway> {
  const open: TestGateway[] = [];
  afterEach(() => Promise.all(open.splice(0).map((gateway) => gateway.close())));
  return async (options) => {
    const gateway = await TestGateway.start(options);
    open.push(gateway);
    return gateway;
  };
}
