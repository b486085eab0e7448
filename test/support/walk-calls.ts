import { once } from "node:events";
import { WebSocket } from "ws";
import type { WireError } from "../../src/protocol/errors.ts";
import { connectParams, TestSocket } from "./gateway-server.ts";

/** One call and its complete response, over either transport. */

export type Via = "http" | "ws";
export const ways: readonly Via[] = ["http", "ws"];

export interface Answered {
  /** `ok`, or the error code. */
  readonly code: string;
  readonly payload: unknown;
  readonly error: WireError | null;
  /** The complete response. */
  readonly text: string;
}

/** Params as JSON that no JavaScript object can represent. Sent unchanged. */
export class Raw {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }
}

export class WalkCalls {
  readonly #url: string;
  readonly #sockets = new Map<string, Promise<TestSocket>>();
  #addresses = 0;
  #ids = 0;

  constructor(url: string) {
    this.#url = url;
  }

  ask(via: Via, token: string | null, method: string, params: unknown): Promise<Answered> {
    return via === "http" ? this.http(token, method, params) : this.ws(token, method, params);
  }

  async http(token: string | null, method: string, params: unknown): Promise<Answered> {
    this.#addresses += 1;
    const address = `10.${this.#addresses >> 16}.${(this.#addresses >> 8) & 255}.${this.#addresses & 255}`;
    const answer = await fetch(`${this.#url}/rpc/${method}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        // A different address each time, so that invalid tokens are not throttled.
        "x-forwarded-for": address,
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      body: jsonOf(params),
    });
    const text = await answer.text();
    const body = JSON.parse(text);
    const error = answer.status === 200 ? null : (body.error as WireError);
    return { code: error?.code ?? "ok", payload: error === null ? body : null, error, text };
  }

  async ws(token: string | null, method: string, params: unknown): Promise<Answered> {
    const socket = token === null ? await this.#fresh() : await this.socket(token);
    this.#ids += 1;
    const id = `walk-${this.#ids}`;
    const answer = socket.answerTo(id);
    socket.ws.send(`{"type":"req","id":"${id}","method":"${method}","params":${jsonOf(params)}}`);
    const frame = await answer;
    if (token === null) socket.ws.terminate();
    const error = frame.ok ? null : frame.error;
    const payload = frame.ok ? frame.payload : null;
    return { code: error?.code ?? "ok", payload, error, text: JSON.stringify(frame) };
  }

  /** One socket per token, reused. */
  socket(token: string): Promise<TestSocket> {
    const known = this.#sockets.get(token) ?? this.#connected(token);
    this.#sockets.set(token, known);
    return known;
  }

  /** Returns the response to `connect` with this token. */
  async connect(token: string): Promise<Answered> {
    const socket = await this.#fresh();
    const frame = await socket.request("connect", connectParams(token));
    socket.ws.terminate();
    const error = frame.ok ? null : frame.error;
    return { code: error?.code ?? "ok", payload: null, error, text: JSON.stringify(frame) };
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets.values()) (await socket).ws.terminate();
  }

  async #connected(token: string): Promise<TestSocket> {
    const socket = await this.#fresh();
    await socket.request("connect", connectParams(token));
    return socket;
  }

  async #fresh(): Promise<TestSocket> {
    this.#addresses += 1;
    const headers = { "x-forwarded-for": `10.9.${this.#addresses >> 8}.${this.#addresses & 255}` };
    const ws = new WebSocket(`${this.#url.replace("http", "ws")}/ws`, { headers });
    const socket = new TestSocket(ws);
    await once(ws, "open");
    return socket;
  }
}

function jsonOf(params: unknown): string {
  return params instanceof Raw ? params.json : JSON.stringify(params);
}
