import { once } from "node:events";
import type { Server, Socket } from "node:net";
import { connect, createServer } from "node:net";

/** Forwards each connection to one of several servers in turn. Skips those that do not accept connections. */
export class Balancer {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #ports: readonly number[] = [];
  #next = 0;

  /** Listens on the first free port, starting with `port`. 0 means any free port. */
  static async start(port = 0): Promise<Balancer> {
    const balancer = new Balancer();
    try {
      balancer.#server.listen(port, "127.0.0.1");
      await once(balancer.#server, "listening");
      return balancer;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      return Balancer.start(port + 1);
    }
  }

  private constructor() {
    this.#server = createServer((client) => this.#forward(client, this.#ports.length));
  }

  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  }

  /** The ports to forward to. Existing connections stay open. */
  set ports(ports: readonly number[]) {
    this.#ports = ports;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, "close");
  }

  #forward(client: Socket, attempts: number): void {
    client.on("error", () => undefined);
    const port = this.#ports[this.#next++ % Math.max(1, this.#ports.length)];
    if (attempts === 0 || port === undefined) return void client.destroy();
    const server = connect(port, "127.0.0.1");
    server.once("error", () => this.#forward(client, attempts - 1));
    server.once("connect", () => {
      server.removeAllListeners("error").on("error", () => undefined);
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(from);
        from.pipe(to);
        from.once("close", () => {
          this.#sockets.delete(from);
          to.destroy();
        });
      }
    });
  }
}
