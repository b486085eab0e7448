import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Started } from "./cli-process.ts";

const bin = fileURLToPath(new URL("../../bin/skein.mjs", import.meta.url));

/** `skein start` as its own process, working in `home`, with `home/root` as its root folder. */
export class GatewayProcess {
  readonly root: string;
  readonly #started: Started;
  #url = "";
  #token = "";

  private constructor(home: string) {
    this.root = join(home, "root");
    const env = { HOME: home, npm_lifecycle_event: "", SKEIN_LOGGING__LEVEL: "silent" };
    const args = [bin, "start", "--dir", this.root, "--port", "0"];
    this.#started = new Started(args, env, { cwd: home });
  }

  /** Resolves when the gateway accepts calls. `config` is the text of `skein.yaml`; without it the file stays as it is. */
  static async start(home: string, config?: string): Promise<GatewayProcess> {
    if (config !== undefined) writeFileSync(join(home, "skein.yaml"), config);
    const gateway = new GatewayProcess(home);
    await gateway.#started.until(/Ctrl-C stops it/);
    const { url } = JSON.parse(readFileSync(join(gateway.root, "gateway.json"), "utf8")) as { url: string };
    gateway.#url = url;
    gateway.#token = readFileSync(join(gateway.root, "token"), "utf8").trim();
    return gateway;
  }

  get url(): string {
    return this.#url;
  }

  /** The admin token of the folder. */
  get token(): string {
    return this.#token;
  }

  /** Calls a method with the admin token; an answer that is not 2xx is thrown. */
  async call<T = Record<string, unknown>>(method: string, params: object = {}): Promise<T> {
    const headers = { authorization: `Bearer ${this.#token}`, "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(params) };
    const answer = await fetch(`${this.#url}/rpc/${method}`, init);
    const body = (await answer.json()) as T;
    if (!answer.ok) throw new Error(`${method} answered ${answer.status}: ${JSON.stringify(body)}`);
    return body;
  }

  /** Ends the process with a signal and waits until it is gone. */
  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<unknown> {
    this.#started.child.kill(signal);
    return this.#started.end();
  }
}
