import { randomInt } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Params, Result } from "../../src/entry-client.ts";
import { Started } from "./cli-process.ts";
import { skeinProgram } from "./programs.ts";

/** Started without npm. Internal errors appear on stderr. */
const env = { npm_lifecycle_event: "", SKEIN_LOGGING__LEVEL: "error" };

/** One folder's gateway, at one address, in as many processes as needed. */
export class GatewayProcess {
  readonly root: string;
  readonly url: string;
  readonly all: Started[] = [];
  readonly #port: number;

  private constructor(root: string, port: number) {
    this.root = root;
    this.#port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async at(root: string): Promise<GatewayProcess> {
    return new GatewayProcess(root, await freePort());
  }

  /** Not awaited. */
  spawn(): Started {
    const started = new Started(
      [skeinProgram, "start", "--dir", this.root, "--port", String(this.#port)],
      env,
    );
    this.all.push(started);
    return started;
  }

  /** Waits until the gateway is ready. */
  async start(): Promise<Started> {
    const started = this.spawn();
    await started.until(/Press Ctrl-C to stop it/);
    return started;
  }

  /** Ends the last process. Returns its exit code or signal. */
  async end(signal: NodeJS.Signals): Promise<unknown> {
    const last = this.all.at(-1);
    last?.child.kill(signal);
    return last?.end();
  }

  /** The errors logged by any of the processes. */
  get complaints(): string {
    return this.all.map(({ err }) => err).join("");
  }

  get admin(): string {
    return readFileSync(join(this.root, "token"), "utf8").trim();
  }

  async token(params: Params<"tokens.create">): Promise<string> {
    const headers = { authorization: `Bearer ${this.admin}`, "content-type": "application/json" };
    const body = JSON.stringify(params);
    const answer = await fetch(`${this.url}/rpc/tokens.create`, { method: "POST", headers, body });
    return ((await answer.json()) as Result<"tokens.create">).token;
  }

  async kill(): Promise<void> {
    for (const { child } of this.all) child.kill("SIGKILL");
    await Promise.all(this.all.map((each) => each.end()));
  }
}

/**
 * The port stays reserved while nothing listens on it. The system assigns ports from 32768 upward, but not this one.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false, // the port is in use
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
