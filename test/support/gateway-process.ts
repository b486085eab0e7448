import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { MethodName, Params, Result } from "../../src/protocol/methods/method-table.ts";
import { Started } from "./cli-process.ts";

const bin = fileURLToPath(new URL("../../bin/skein.mjs", import.meta.url));
/** Not started by npm, so that it outlives nothing and waits for nobody. */
const byHand = { npm_lifecycle_event: "" };

/** `skein start` in a process of its own, on `root` below a folder that also holds `skein.yaml`. */
export class GatewayProcess {
  readonly process: Started;
  readonly home: string;
  readonly root: string;
  #url = "";

  static async start(home: string, env: NodeJS.ProcessEnv = {}): Promise<GatewayProcess> {
    const started = new GatewayProcess(home, env);
    const [, url = ""] = await started.process.until(/^ *address +(\S+)/m);
    await started.process.until(/Ctrl-C stops it/);
    started.#url = url;
    return started;
  }

  private constructor(home: string, env: NodeJS.ProcessEnv) {
    this.home = home;
    this.root = join(home, "root");
    const args = [bin, "start", "--dir", this.root, "--port", "0"];
    this.process = new Started(args, { HOME: home, ...byHand, ...env }, { cwd: home });
  }

  get url(): string {
    return this.#url;
  }

  /** Everything it has logged or printed so far. */
  get said(): string {
    return `${this.process.out}\n${this.process.err}`;
  }

  /** A command of the CLI on the same folder. */
  cli(...args: readonly string[]): Started {
    return new Started(
      [bin, "--dir", this.root, ...args],
      { HOME: this.home, ...byHand },
      { cwd: this.home },
    );
  }

  async call<M extends MethodName>(method: M, params: Params<M>, token = this.token): Promise<Result<M>> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${this.#url}/rpc/${method}`, {
      method: "POST",
      headers,
      body: JSON.stringify(params),
    });
    const body = (await answer.json()) as Result<M>;
    if (!answer.ok) throw new Error(`${method}: ${answer.status} ${JSON.stringify(body)}`);
    return body;
  }

  get token(): string {
    return readFileSync(join(this.root, "token"), "utf8").trim();
  }

  /** Sends a message and waits for the end of its run. */
  async ask(message: string, idempotencyKey: string): Promise<Result<"agent.wait">> {
    const { runId } = await this.call("chat.send", { sessionKey: "main", message, idempotencyKey });
    return this.call("agent.wait", { runId, timeoutMs: 150_000 });
  }

  async kill(): Promise<void> {
    this.process.child.kill("SIGKILL");
    await this.process.end();
  }
}
