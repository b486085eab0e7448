import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";

export interface SplitTargets {
  /** The gateway that HTTP requests and the first WebSocket reach. A client makes its calls over its first socket. */
  readonly calls: { readonly url: string };
  /** The gateway that later WebSockets reach. A client opens one for each of its streams. */
  readonly streams: { readonly url: string };
}

/** A load balancer that sends a client's calls and its event streams to different gateways. */
export class SplittingProxy {
  readonly #targets: SplitTargets;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #sockets = 0;

  private constructor(targets: SplitTargets) {
    this.#targets = targets;
    this.#server = createServer((near) => {
      // The request line of an upgrade always arrives in the first bytes of its connection.
      near.once("data", (head: Buffer) => this.#take(near, head));
      near.on("error", () => near.destroy());
    });
  }

  static async to(targets: SplitTargets): Promise<SplittingProxy> {
    const proxy = new SplittingProxy(targets);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
    await once(this.#server, "close");
  }

  #take(near: Socket, head: Buffer): void {
    const isStream = head.toString("latin1").startsWith("GET /ws ") && this.#sockets++ > 0;
    const { hostname, port } = new URL(this.#targets[isStream ? "streams" : "calls"].url);
    const far = connect(Number(port), hostname);
    far.on("error", () => far.destroy());
    far.write(head);
    near.pipe(far).pipe(near);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#open.add(socket);
      socket.on("close", () => {
        this.#open.delete(socket);
        other.destroy();
      });
    }
  }
}
