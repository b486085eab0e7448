import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as after } from "node:timers/promises";
import type { StartPayload } from "../src/protocol/command-payloads.ts";
import { root } from "./steps.ts";

export interface SupervisedOptions {
  readonly name: string;
  /** Options for `skein start`. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  say(line: string): void;
  /** Called when the gateway has ended or is running again. */
  onChange(): void;
}

interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown[]>;
  readonly address: StartPayload;
}

const firstPauseMs = 1000;
const longestPauseMs = 30_000;

/** A gateway process that is restarted if it exits on its own. */
export class SupervisedGateway {
  readonly #options: SupervisedOptions;
  readonly #stopping = new AbortController();
  #child: ChildProcess | null = null;
  #ended: Promise<unknown> = Promise.resolve();
  #address: StartPayload | null = null;

  constructor(options: SupervisedOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  /** `null` while it is not running. */
  get address(): StartPayload | null {
    return this.#address;
  }

  /** Resolves when the gateway accepts calls. Rejects if the first start fails. */
  async start(): Promise<void> {
    void this.#supervise(await this.#launch());
  }

  /** A second call ends the process without waiting for its runs. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#child?.kill("SIGTERM");
    await this.#ended;
  }

  async #supervise(first: Running): Promise<void> {
    const { name, say } = this.#options;
    const title = capitalize(name);
    for (let running: Running | null = first; running !== null; running = await this.#launchAgain()) {
      this.#setAddress(running.address);
      const { pid } = running.address;
      if (running !== first) say(`${title} is running again, as process ${pid}.`);
      const [code, signal] = await running.ended;
      this.#setAddress(null);
      if (this.#stopping.signal.aborted) return;
      say(`${title} (process ${pid}) has ended: ${signal ?? `exit status ${code}`}. Restarting it.`);
    }
  }

  #setAddress(address: StartPayload | null): void {
    this.#address = address;
    this.#options.onChange();
  }

  /** Returns `null` if it was stopped. */
  async #launchAgain(): Promise<Running | null> {
    const { signal } = this.#stopping;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, 2 * pauseMs)) {
      await after(pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return null;
      try {
        return await this.#launch();
      } catch (error) {
        if (!signal.aborted) this.#options.say(String(error));
      }
    }
  }

  async #launch(): Promise<Running> {
    const { name, args, cwd, env, say } = this.#options;
    // In its own process group, so that Ctrl-C reaches it only through this process.
    const child = spawn(process.execPath, [join(root, "bin/skein.mjs"), "start", "--json", ...args], {
      ...{ cwd, env, detached: true },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = once(child, "close");
    this.#child = child;
    this.#ended = ended;
    createInterface({ input: child.stderr }).on("line", (line) => say(`${name}: ${line}`));
    const failed = ended.then(() => {
      throw new Error(`${capitalize(name)} could not start.`);
    });
    // If the gateway ends later, no caller handles the rejection.
    failed.catch(() => undefined);
    return { child, ended, address: await Promise.race([readStart(child), failed]) };
  }
}

/** Reads the JSON document that `skein start --json` prints when it accepts calls. */
async function readStart({ stdout }: ChildProcess): Promise<StartPayload> {
  let text = "";
  for await (const chunk of stdout ?? []) {
    text += String(chunk);
    if (text.trimEnd().endsWith("}")) break;
  }
  return JSON.parse(text) as StartPayload;
}

function capitalize(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
