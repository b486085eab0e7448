// The environment for the suite that kills ACP agents behind `skein start`. The gateway is a process, and every request
// is external.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connectWith } from "../../src/client/connect.ts";
import { realTiming } from "../../src/client/retry.ts";
import type { MethodName, Params, ReceivedEvent, Result, SkeinClient } from "../../src/entry-client.ts";
import { CallError } from "../../src/entry-client.ts";
import { agentsAlive, wardensAlive } from "./acp-kill-count.ts";
import { makeWorld, user } from "./acp-kill-world.ts";
import { Started } from "./cli-process.ts";
import { CuttingProxy } from "./gateway-clients-proxy.ts";
import type { WireEntry } from "./payloads.ts";
import { skeinProgram } from "./programs.ts";
import { findRunning } from "./running-gateway.ts";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const npmLike = path("npm-like.ts");

/** The number of agents that work concurrently. */
export const slots = 4;

type Config = { models?: unknown; acp: { agents: Record<string, object> } };

/** Started directly, or as npm does: through a shell, in its own process group. */
export type StartedBy = "hand" | "npm";

export class GatewayWorld {
  readonly folder: string;
  readonly root: string;
  readonly all: Started[] = [];
  readonly events: ReceivedEvent[] = [];
  /** Keyed by session key. */
  readonly followed = new Map<string, WireEntry[]>();
  /** Unexpected events. */
  readonly failures: unknown[] = [];
  #door: CuttingProxy | null = null;
  #client: SkeinClient | null = null;
  readonly #reading: Promise<unknown>[] = [];

  constructor(folder: string) {
    this.folder = folder;
    this.root = join(folder, "skein");
    makeWorld(folder);
    mkdirSync(join(folder, "home"));
    this.configure((config) => {
      // Parents use the rehearsal model.
      const { models: _, ...rest } = config;
      const { agents } = rest.acp;
      const asking = { ...agents, asking: { ...agents.lean, permissions: "ask" } };
      // Longer than any machine stays busy.
      const acp = { ...rest.acp, agents: asking, startTimeoutSeconds: 600 };
      return { ...rest, lanes: { subagent: slots }, approvals: { timeoutSeconds: 3600 }, acp };
    });
  }

  /** Rewrites the configuration. */
  configure(change: (config: Config) => object): void {
    const file = join(this.folder, "skein.yaml");
    const config = JSON.parse(readFileSync(file, "utf8")) as Config;
    writeFileSync(file, JSON.stringify(change(config)));
  }

  get last(): Started {
    return this.all.at(-1) as Started;
  }

  /** The PID of the gateway itself, not of its parents. */
  get pid(): number {
    return findRunning(this.root)?.pid ?? 0;
  }

  /** Not awaited. */
  spawn(by: StartedBy = "hand"): Started {
    const command = [skeinProgram, "start", "--dir", this.root, "--port", "0"];
    const args = by === "npm" ? [npmLike, "start", ...command] : command;
    const env = {
      HOME: join(this.folder, "home"),
      npm_lifecycle_event: "",
      SKEIN_LOGGING__LEVEL: "error",
    };
    const cwd = join(this.folder, "work");
    const started = new Started(args, env, { cwd, detached: by === "npm" });
    this.all.push(started);
    return started;
  }

  /** Waits until the gateway is ready and reachable. */
  async start(by: StartedBy = "hand"): Promise<Started> {
    const started = this.spawn(by);
    await started.until(/Press Ctrl-C to stop it/);
    const url = findRunning(this.root)?.url ?? "";
    if (this.#door === null) this.#door = await CuttingProxy.to(url, () => Number.POSITIVE_INFINITY);
    else this.#door.leadTo(url);
    return started;
  }

  /** A client that receives all of its user's events for as long as the environment exists. */
  async connect(): Promise<void> {
    const url = this.#door?.url ?? "";
    const token = await this.#token(url);
    const client = await connectWith(url, { token, reconnect: { minMs: 50, maxMs: 500 } }, realTiming);
    this.#client = client;
    const stream = client.events();
    this.#reads(async () => {
      for await (const event of stream) this.events.push(event);
    });
    await stream.ready;
  }

  async #token(url: string): Promise<string> {
    const admin = readFileSync(join(this.root, "token"), "utf8").trim();
    const headers = { authorization: `Bearer ${admin}`, "content-type": "application/json" };
    const body = JSON.stringify({ scopes: ["read", "write", "tools"], ...user });
    const answer = await fetch(`${url}/rpc/tokens.create`, { method: "POST", headers, body });
    return ((await answer.json()) as Result<"tokens.create">).token;
  }

  /** Repeats the same call until it is answered. */
  async call<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>> {
    for (;;) {
      try {
        return await (this.#client as SkeinClient).call(method, params);
      } catch (error) {
        if (!(error instanceof CallError) || !error.retryable) throw error;
        await new Promise((resolve) => void setTimeout(resolve, 50));
      }
    }
  }

  /** Follows a session from its first entry. */
  follow(key: string): void {
    const entries: WireEntry[] = [];
    this.followed.set(key, entries);
    this.#reads(async () => {
      for await (const entry of (this.#client as SkeinClient).follow(key)) entries.push(entry);
    });
  }

  /** Spawns a child through an external call in the session with the given key. Resolves once the spawn is accepted. */
  async spawnChild(sessionKey: string, args: Readonly<Record<string, unknown>>): Promise<void> {
    const label = String(args.label);
    const invoked = { sessionKey, name: "sessions_spawn", arguments: args, idempotencyKey: `spawn-${label}` };
    const { result } = await this.call("tools.invoke", invoked);
    writeFileSync(join(this.folder, "answers", `${label}.json`), JSON.stringify(result));
  }

  /** The number of agents that have reached the point at which they wait. */
  get held(): number {
    return readdirSync(join(this.folder, "blows")).filter((name) => name.endsWith("-hold")).length;
  }

  get processes(): number[] {
    return [...agentsAlive(this.folder), ...wardensAlive(this.folder)];
  }

  /** The errors logged by any of the gateways. */
  get complaints(): string {
    return this.all.map(({ err }) => err).join("");
  }

  async close(): Promise<void> {
    await this.#client?.close();
    await Promise.all(this.#reading);
    await this.#door?.close();
  }

  /** Stops everything that is still running, for example after a failed test. */
  async endAll(): Promise<void> {
    await this.close();
    const { pid } = this;
    if (pid !== 0) process.kill(pid, "SIGKILL");
    for (const { child } of this.all) child.kill("SIGKILL");
    await Promise.all(this.all.map((each) => each.end()));
    for (const each of agentsAlive(this.folder)) process.kill(each, "SIGKILL");
  }

  #reads(read: () => Promise<void>): void {
    this.#reading.push(read().catch((error: unknown) => void this.failures.push(error)));
  }
}
