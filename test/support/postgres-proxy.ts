import { once } from "node:events";
import type { Socket } from "node:net";
import { connect, createServer } from "node:net";

/** A proxy between a store and its server that counts what the store sends and can drop replies. */
export interface PostgresProxy {
  /** The server's address, through the proxy. */
  readonly url: string;
  /**
   * The number of times the store has sent something, other than notifications to other processes. A small request is
   * sent at once.
   */
  sent(): number;
  /** Closes the connection instead of passing on the reply to the next request that contains this text. */
  dropReplyTo(text: string): void;
  /** The same for the commit of the next transaction with this text. The store also commits work in the background. */
  dropReplyToCommitOf(text: string): void;
  /** Cuts all connections and accepts no more until `restore`. */
  cut(): void;
  restore(): void;
  /** Passes nothing on in either direction until `resume`, as if the server hung. */
  pause(): void;
  resume(): void;
  /** The number of replies that were dropped. */
  dropped(): number;
  close(): Promise<void>;
}

export async function startPostgresProxy(target: string): Promise<PostgresProxy> {
  const address = new URL(target);
  const sockets = new Set<Socket>();
  let [sent, dropped] = [0, 0];
  /** The texts that a connection still has to send, in this order. */
  let wanted: readonly string[] = [];
  let wantedOf: Socket | null = null;
  let isCut = false;
  let isPaused = false;
  const proxy = createServer((client) => {
    if (isCut) return void client.destroy();
    const server = connect(Number(address.port), address.hostname);
    if (isPaused) for (const socket of [client, server]) socket.pause();
    let isListening = false;
    let isDropping = false;
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    client.on("data", (chunk) => {
      isListening ||= chunk.includes("LISTEN skein");
      if (!isListening) sent += 1;
      while (wantedOf === null || wantedOf === client) {
        const [next, ...rest] = wanted;
        if (next === undefined || !chunk.includes(next)) break;
        [wanted, wantedOf] = [rest, client];
        if (rest.length === 0) [isDropping, wantedOf] = [true, null];
      }
      server.write(chunk);
    });
    server.on("data", (chunk) => {
      if (!isDropping) return void client.write(chunk);
      dropped += 1;
      client.destroy();
    });
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const own = proxy.address();
  const url = new URL(target);
  url.port = String(typeof own === "object" ? own?.port : 0);
  return {
    url: url.href,
    cut: () => {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    restore: () => {
      isCut = false;
    },
    pause: () => {
      isPaused = true;
      for (const socket of sockets) socket.pause();
    },
    resume: () => {
      isPaused = false;
      for (const socket of sockets) socket.resume();
    },
    sent: () => sent,
    dropReplyTo: (text) => {
      wanted = [text];
    },
    dropReplyToCommitOf: (text) => {
      wanted = [text, "COMMIT"];
    },
    dropped: () => dropped,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, "close");
    },
  };
}
