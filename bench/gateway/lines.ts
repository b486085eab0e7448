import type { Socket } from "node:net";
import { connect } from "node:net";
import { WebSocket } from "ws";
import type { Served } from "./served.ts";

/**
 * Connections that send one request at a time. They write HTTP directly, because a client that does more than count
 * bytes would be slower than the servers and hide which of them is faster.
 */
export interface Line {
  /** Resolves to the size of the response body in bytes. Rejects if the response is an error. */
  ask(method: string, params: string): Promise<number>;
  close(): void;
}

export async function httpLine({ url, token }: Served): Promise<Line> {
  const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  const answers = new HttpAnswers(socket);
  const headers = `host: ${url.host}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n`;
  return {
    ask: (method, params) => {
      const length = Buffer.byteLength(params);
      socket.write(`POST /rpc/${method} HTTP/1.1\r\n${headers}content-length: ${length}\r\n\r\n${params}`);
      return answers.next();
    },
    close: () => socket.destroy(),
  };
}

/** Reads responses with a content length, one after another. */
class HttpAnswers {
  #waiting: PromiseWithResolvers<number> | null = null;
  #head = "";
  #length = 0;
  /** Returns the length of the body, or -1 if the header is incomplete. */
  #left = -1;

  constructor(socket: Socket) {
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.once("close", () => this.#waiting?.reject(new Error("the server closed the connection")));
  }

  next(): Promise<number> {
    this.#waiting = Promise.withResolvers();
    this.#head = "";
    this.#left = -1;
    return this.#waiting.promise;
  }

  #take(chunk: Buffer): void {
    let bytes = chunk.length;
    if (this.#left === -1) {
      const end = chunk.indexOf("\r\n\r\n");
      this.#head += chunk.toString("latin1", 0, end === -1 ? chunk.length : end + 4);
      if (end === -1) return;
      const [, length] = /\r\ncontent-length: (\d+)/i.exec(this.#head) ?? [];
      this.#length = Number(length);
      this.#left = this.#length;
      bytes -= end + 4;
    }
    this.#left -= bytes;
    if (this.#left > 0) return;
    if (this.#head.startsWith("HTTP/1.1 200 ")) this.#waiting?.resolve(this.#length);
    else this.#waiting?.reject(new Error(`${this.#head}${chunk.toString("utf8").slice(-300)}`));
  }
}

const beginning = '{"type":"res","id":"1","ok":true';

export async function socketLine(served: Served): Promise<Line> {
  const ws = await openSocket(served);
  let waiting: PromiseWithResolvers<number> | null = null;
  ws.on("message", (data: Buffer) => {
    if (data.toString("latin1", 0, beginning.length) === beginning) waiting?.resolve(data.length);
    else waiting?.reject(new Error(data.toString("utf8").slice(0, 300)));
  });
  ws.once("close", () => waiting?.reject(new Error("the server closed the socket")));
  return {
    ask: (method, params) => {
      waiting = Promise.withResolvers();
      ws.send(`{"type":"req","id":"1","method":"${method}","params":${params}}`);
      return waiting.promise;
    },
    close: () => ws.terminate(),
  };
}

/** A socket that has received `hello`. */
export async function openSocket({ url, token }: Served): Promise<WebSocket> {
  const ws = new WebSocket(`ws://${url.host}/ws`, { perMessageDeflate: false, skipUTF8Validation: true });
  await new Promise<void>((resolve, reject) => ws.once("open", resolve).once("error", reject));
  const params = { protocol: { min: 1, max: 1 }, client: { name: "bench", version: "0" }, auth: { token } };
  ws.send(JSON.stringify({ type: "req", id: "1", method: "connect", params }));
  check(await new Promise<Buffer>((resolve, reject) => ws.once("message", resolve).once("close", reject)));
  return ws;
}

/** Checks that a response is not an error. */
export function check(data: Buffer): void {
  const text = data.toString("utf8");
  if (!text.includes('"ok":true')) throw new Error(text.slice(0, 300));
}
