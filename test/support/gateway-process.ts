import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { MethodName, Params, Result } from "../../src/entry-client.ts";
import { StartedInside } from "./cli-inside.ts";
import { Started } from "./cli-process.ts";
import { storeEnv } from "./empty-store.ts";
import { skeinProgram } from "./programs.ts";

export interface GatewayStart {
  /** The text of `skein.yaml`. If absent, the file stays unchanged. */
  readonly config?: string;
  /** Options for Node itself, such as a module to load first. */
  readonly node?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** More options for `skein start`. */
  readonly args?: readonly string[];
  /** A port to start on again. Defaults to a free port. */
  readonly port?: number;
}

export interface RpcAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: each test knows the method that it calls
  readonly body: any;
}

/** `skein start` in a separate process. It runs in `home`, and `home/root` is its root folder. */
export class GatewayProcess {
  readonly home: string;
  readonly root: string;
  readonly url: string;
  /** The folder's admin token. */
  readonly token: string;
  readonly process: Started;

  /** Resolves when the gateway accepts calls. */
  static async start(
    home: string,
    { config, node = [], env = {}, args: options = [], port = 0 }: GatewayStart = {},
  ): Promise<GatewayProcess> {
    if (config !== undefined) writeFileSync(join(home, "skein.yaml"), config);
    const where = ["--dir", join(home, "root"), "--port", String(port)];
    const args = [...node, skeinProgram, "start", ...where, ...options];
    // No settings from this machine apply, and npm is not the parent process.
    const own = {
      HOME: home,
      npm_lifecycle_event: "",
      SKEIN_DIR: "",
      ...(await storeEnv(join(home, "root"))),
    };
    const process = new Started(args, { ...own, ...env }, { cwd: home });
    await process.until(/Press Ctrl-C to stop it/);
    return new GatewayProcess(home, process);
  }

  private constructor(home: string, process: Started) {
    this.home = home;
    this.root = join(home, "root");
    this.process = process;
    this.url = /^ +address +(\S+)$/m.exec(process.out)?.[1] ?? "";
    this.token = readFileSync(join(this.root, "token"), "utf8").trim();
  }

  /** Everything that the gateway has printed and logged so far. */
  get output(): string {
    return `${this.process.out}\n${this.process.err}`;
  }

  async rpc(method: string, params: object = {}, token = this.token): Promise<RpcAnswer> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const body = JSON.stringify(params);
    const answer = await fetch(`${this.url}/rpc/${method}`, { method: "POST", headers, body });
    return { status: answer.status, body: await answer.json() };
  }

  /**
   * Returns the result of a call that must succeed. Waits as the gateway asks if the token has sent more calls than it
   * may, as on a fast machine.
   */
  async call<M extends MethodName>(method: M, params: Params<M>, token = this.token): Promise<Result<M>> {
    const { status, body } = await this.rpc(method, params as object, token);
    if (status === 200) return body;
    if (status !== 429) throw new Error(`${method} answered ${status}: ${JSON.stringify(body)}`);
    await sleep(body.error.retryAfterMs);
    return this.call(method, params, token);
  }

  /** Sends a message to the main session and waits for its run to end. */
  async ask(message: string, idempotencyKey: string): Promise<Result<"agent.wait">> {
    const { runId } = await this.call("chat.send", { sessionKey: "main", message, idempotencyKey });
    return this.call("agent.wait", { runId, timeoutMs: 150_000 });
  }

  /** Requests `/readyz` without a token, like a load balancer. */
  async ready(): Promise<{ status: number; text: string }> {
    const answer = await fetch(`${this.url}/readyz`);
    return { status: answer.status, text: await answer.text() };
  }

  /** Returns why the gateway is not ready, as shown to the operator. */
  async problems(): Promise<string[]> {
    const answer = await fetch(`${this.url}/readyz`, { headers: { authorization: `Bearer ${this.token}` } });
    return ((await answer.json()) as { problems?: string[] }).problems ?? [];
  }

  /** Runs a command on the same folder, in this process. */
  cli(...args: readonly string[]): StartedInside {
    return startCommand(this.home, ...args);
  }

  /** Ends the process with a signal and waits until it has exited. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<unknown> {
    this.process.child.kill(signal);
    return this.process.end();
  }
}

/** Runs a command on the root folder in `home`, with or without a gateway. */
function startCommand(home: string, ...args: readonly string[]): StartedInside {
  return new StartedInside([...args, "--dir", join(home, "root")], home);
}

/** Runs the command until it exits. */
export async function runCommand(
  home: string,
  ...args: readonly string[]
): Promise<{ exit: number; out: string; err: string }> {
  const command = startCommand(home, ...args);
  return { exit: await command.end(), out: command.out, err: command.err };
}
