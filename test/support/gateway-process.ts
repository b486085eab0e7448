import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runningPath } from "../../src/gateway/running-file.ts";
import { Started } from "./cli-process.ts";

const bin = fileURLToPath(new URL("../../bin/skein.mjs", import.meta.url));

export interface RpcAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: each test knows the method it calls
  readonly body: any;
}

/** `skein start` in a process of its own, on a root folder inside `home`. */
export class GatewayProcess {
  readonly home: string;
  readonly root: string;
  readonly url: string;
  readonly admin: string;
  readonly process: Started;

  /** `config`: the text of `skein.yaml`. `node`: options for Node itself, such as a module to load first. */
  static async start(
    home: string,
    { config, node = [], env = {} }: { config?: string; node?: string[]; env?: NodeJS.ProcessEnv } = {},
  ): Promise<GatewayProcess> {
    if (config !== undefined) writeFileSync(join(home, "skein.yaml"), config);
    const root = join(home, "root");
    const args = [...node, bin, "start", "--dir", root, "--port", "0"];
    const process = new Started(args, { ...plain(home), ...env }, { cwd: home });
    await process.until(/Ctrl-C stops it/);
    return new GatewayProcess(home, root, process);
  }

  private constructor(home: string, root: string, process: Started) {
    this.home = home;
    this.root = root;
    this.process = process;
    this.url = (JSON.parse(readFileSync(runningPath(root), "utf8")) as { url: string }).url;
    this.admin = readFileSync(join(root, "token"), "utf8").trim();
  }

  async rpc(method: string, params: object = {}, token = this.admin): Promise<RpcAnswer> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const body = JSON.stringify(params);
    const answer = await fetch(`${this.url}/rpc/${method}`, { method: "POST", headers, body });
    return { status: answer.status, body: await answer.json() };
  }

  /** What a call gives that must go well. */
  async ok(method: string, params: object = {}, token = this.admin): Promise<RpcAnswer["body"]> {
    const { status, body } = await this.rpc(method, params, token);
    if (status !== 200) throw new Error(`${method}: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** `/readyz` as a load balancer asks it, without a token. */
  async ready(): Promise<{ status: number; text: string }> {
    const answer = await fetch(`${this.url}/readyz`);
    return { status: answer.status, text: await answer.text() };
  }

  async problems(): Promise<string[]> {
    const headers = { authorization: `Bearer ${this.admin}` };
    const answer = await fetch(`${this.url}/readyz`, { headers });
    return ((await answer.json()) as { problems?: string[] }).problems ?? [];
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<unknown> {
    this.process.child.kill(signal);
    return this.process.end();
  }
}

/** A command that runs to its end. */
export async function runCommand(
  home: string,
  ...args: string[]
): Promise<{ exit: unknown; out: string; err: string }> {
  const started = new Started([bin, ...args, "--dir", join(home, "root")], plain(home), { cwd: home });
  const exit = await started.end();
  return { exit, out: started.out, err: started.err };
}

function plain(home: string): NodeJS.ProcessEnv {
  return { HOME: home, npm_lifecycle_event: "", SKEIN_DIR: "" };
}
