import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";

/** A proxy between clients and a gateway that cuts each connection after a number of bytes, in either direction. */
export class CuttingProxy {
  /** The number of connections that were cut. */
  cuts = 0;
  /** The number of bytes until the next connection is cut. Unlimited after the storm. */
  lives: () => number;
  #target: URL;
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  private constructor(target: string, lives: () => number) {
    this.#target = new URL(target);
    this.lives = lives;
    this.#server = createServer((near) => this.#take(near));
  }

  static async to(target: string, lives: () => number): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target, lives);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Sets the target for new connections. */
  leadTo(target: string): void {
    this.#target = new URL(target);
  }

  cutAll(): void {
    for (const socket of this.#open) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.cutAll();
    this.#server.close();
    await once(this.#server, "close");
  }

  #take(near: Socket): void {
    const far = connect(Number(this.#target.port), this.#target.hostname);
    let left = this.lives();
    const pass = (from: Socket, to: Socket) => {
      this.#open.add(from);
      from.on("data", (bytes: Buffer) => {
        const part = bytes.subarray(0, left);
        left -= part.length;
        to.write(part, () => {
          if (left === 0) cut();
        });
      });
      from.on("error", () => from.destroy());
      from.on("close", () => {
        this.#open.delete(from);
        to.end();
      });
    };
    const cut = () => {
      if (!near.destroyed) this.cuts += 1;
      near.resetAndDestroy();
      far.destroy();
    };
    pass(near, far);
    pass(far, near);
  }
}
