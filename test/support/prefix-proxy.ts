import { once } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import { createServer, request as sendRequest } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";

/** A proxy that serves a gateway under a path prefix, including WebSockets, and nothing outside that prefix. */
export class PrefixProxy {
  /** The requested paths outside the prefix. */
  readonly refused: string[] = [];
  readonly #target: URL;
  readonly #prefix: string;
  readonly #removesPrefix: boolean;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: string, prefix: string, removesPrefix: boolean) {
    this.#target = new URL(target);
    this.#prefix = prefix;
    this.#removesPrefix = removesPrefix;
    this.#server = createServer((request, response) => {
      const outgoing = this.#forward(request);
      if (outgoing === null) return void response.writeHead(404).end();
      outgoing.on("response", (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      outgoing.on("error", () => response.destroy());
      request.pipe(outgoing);
    });
    this.#server.on("upgrade", (request, near) => this.#upgrade(request, near));
    this.#server.on("connection", (socket) => this.#sockets.add(socket));
  }

  static async start(
    target: string,
    prefix: string,
    { removesPrefix = false }: { readonly removesPrefix?: boolean } = {},
  ): Promise<PrefixProxy> {
    const proxy = new PrefixProxy(target, prefix, removesPrefix);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  /** The gateway's public address, without a trailing slash. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${this.#prefix}`;
  }

  /** Ends every connection. A second call does nothing. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, "close");
  }

  #forward({ url = "", method = "", headers }: IncomingMessage) {
    if (url !== this.#prefix && !url.startsWith(`${this.#prefix}/`)) {
      this.refused.push(url);
      return null;
    }
    const path = this.#removesPrefix ? url.slice(this.#prefix.length) || "/" : url;
    const { hostname: host, port } = this.#target;
    return sendRequest({ host, port, path, method, headers });
  }

  #upgrade(request: IncomingMessage, near: Duplex): void {
    const outgoing = this.#forward(request);
    if (outgoing === null) return void near.destroy();
    outgoing.on("upgrade", (answer, far) => {
      const headers = answer.rawHeaders.flatMap((name, index) =>
        index % 2 === 0 ? [`${name}: ${answer.rawHeaders[index + 1]}`] : [],
      );
      near.write(`${["HTTP/1.1 101 Switching Protocols", ...headers].join("\r\n")}\r\n\r\n`);
      near.pipe(far).pipe(near);
      near.on("error", () => far.destroy());
      far.on("error", () => near.destroy());
    });
    outgoing.on("response", () => near.destroy());
    outgoing.on("error", () => near.destroy());
    outgoing.end();
  }
}
