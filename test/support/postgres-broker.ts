// Starts one PostgreSQL server for a test run when the first test file asks for it. Test files run in several processes,
// so they ask over a local connection.
import type { ChildProcessByStdio } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Interface } from "node:readline";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

/** Where a server listens, or why there is none. */
export type KeptServer =
  | {
      readonly port: number;
      /** The folder of a private server's socket. */
      readonly socket?: string;
    }
  | { readonly missing: string };

/** A server that runs until it is stopped or this process ends. */
export class ServerKeeper {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;
  readonly server: Promise<KeptServer>;

  /**
   * A durable server is on the disk and syncs, as in production. A private one cannot be reached by other accounts of this
   * machine. Tests need neither.
   */
  constructor({ isDurable = false, isPrivate = false } = {}) {
    const options = [...(isDurable ? ["--durable"] : []), ...(isPrivate ? ["--private"] : [])];
    // In its own process group, so that Ctrl-C does not reach it before the tests have ended.
    this.#child = spawn(process.execPath, [join(import.meta.dirname, "postgres-keeper.ts"), ...options], {
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
    });
    this.#child.stdin.on("error", () => undefined);
    this.#lines = createInterface({ input: this.#child.stdout });
    this.server = this.#answer<KeptServer>();
  }

  /** Ends the server without a checkpoint. */
  async crash(): Promise<void> {
    await this.#command("crash");
  }

  async start(): Promise<void> {
    await this.#command("start");
  }

  async stop(): Promise<void> {
    const closed = this.#child.exitCode === null ? once(this.#child, "close") : null;
    this.#child.stdin.end();
    await closed;
  }

  async #command(command: string): Promise<void> {
    const answer = this.#answer<object>();
    this.#child.stdin.write(`${command}\n`);
    const said = await answer;
    if (!("done" in said)) throw new Error(`the keeper failed: ${JSON.stringify(said)}`);
  }

  async #answer<T>(): Promise<T> {
    const ended = once(this.#lines, "close").then(() => ['{"missing":"the keeper ended"}']);
    const [line] = await Promise.race([once(this.#lines, "line"), ended]);
    return JSON.parse(String(line)) as T;
  }
}

export default async function startBroker(): Promise<() => Promise<void>> {
  let keeper: ServerKeeper | null = null;
  const broker = createServer((socket) => {
    socket.on("error", () => undefined);
    keeper ??= new ServerKeeper();
    void keeper.server.then((server) => socket.end(JSON.stringify(server)));
  });
  broker.listen(0, "127.0.0.1").unref();
  await once(broker, "listening");
  const address = broker.address();
  process.env.SKEIN_TEST_POSTGRES = String(typeof address === "object" ? address?.port : 0);
  return async () => {
    broker.close();
    await keeper?.stop();
  };
}
