import type { ChildProcessByStdio } from "node:child_process";
import { spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { cutText, endOfText, escapeToLine } from "../../core/text.ts";
import type { McpCommand } from "./config.ts";
import { LineSplitter } from "./line-splitter.ts";

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const keptStderr = 2000;
const shownChars = 300;
const patienceMs = 2000;
const inherited = ["PATH", "HOME", "LANG"];

export interface ChildOptions {
  /** What PATH, HOME and LANG are taken from. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly parse: (value: unknown) => JSONRPCMessage;
}

/**
 * Messages as lines over the pipes of a child process, which leads a process group of its own: what it started itself
 * (`npx` does) ends with it. It is given PATH, HOME, LANG and the configured environment, and nothing else of ours.
 */
export class ChildTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;

  readonly #config: McpCommand;
  readonly #options: ChildOptions;
  readonly #lines = new LineSplitter();
  #child: Child | null = null;
  #closing: Promise<void> | null = null;
  #stderr = "";
  #garbage: string | null = null;
  #end: string | null = null;
  #isClosed = false;

  constructor(config: McpCommand, options: ChildOptions) {
    this.#config = config;
    this.#options = options;
  }

  /** How it ended, what it said that was no message, and the end of its stderr: for a diagnostic. */
  get account(): string {
    const said = endOfText(this.#stderr.trim(), shownChars);
    return [
      ...(this.#end === null ? [] : [this.#end]),
      ...(this.#garbage === null ? [] : [`it wrote what is no message: ${this.#garbage}`]),
      ...(said === "" ? [] : [`its stderr ends: ${escapeToLine(said)}`]),
    ].join("; ");
  }

  start(): Promise<void> {
    const { command, args = [], env, cwd } = this.#config;
    const own = inherited.flatMap((name) => {
      const value = this.#options.env[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    const child = spawn(command, args, {
      env: { ...Object.fromEntries(own), ...env },
      ...(cwd !== undefined && { cwd }),
      stdio: ["pipe", "pipe", "pipe"],
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    this.#child = child;
    this.#listen(child);
    return new Promise((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", reject);
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (this.#isClosed || stdin === undefined || !stdin.writable)
      return Promise.reject(new Error("the server is not running"));
    return new Promise((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** SIGTERM, after 2 s SIGKILL; resolves when it is gone. */
  close(): Promise<void> {
    this.#closing ??= this.#stop();
    return this.#closing;
  }

  async #stop(): Promise<void> {
    const child = this.#child;
    if (child === null || child.pid === undefined || hasEnded(child)) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.stdin.end();
    this.#signal("SIGTERM");
    const kill = setTimeout(() => this.#signal("SIGKILL"), patienceMs);
    await gone;
    clearTimeout(kill);
  }

  #listen(child: Child): void {
    const tell = (error: Error) => this.onerror?.(error);
    child.on("error", tell);
    child.stdin.on("error", tell);
    child.stdout.on("error", tell);
    child.stdout.on("data", (chunk: Buffer) => this.#take(chunk));
    child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr = endOfText(this.#stderr + chunk.toString("utf8"), keptStderr);
    });
    child.once("exit", (code, signal) => {
      this.#end = signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`;
      // What is left of its group would hold the pipes open, and live on.
      this.#signal("SIGKILL");
      setTimeout(() => this.#closed(), 1000).unref();
    });
    child.once("close", () => this.#closed());
  }

  #take(chunk: Buffer): void {
    try {
      for (const line of this.#lines.take(chunk)) this.#read(line);
    } catch (error) {
      this.#garbage ??= error instanceof Error ? error.message : String(error);
      void this.close();
    }
  }

  #read(line: string): void {
    let message: JSONRPCMessage;
    try {
      message = this.#options.parse(JSON.parse(line));
    } catch {
      this.#garbage ??= escapeToLine(cutText(line, shownChars));
      return;
    }
    this.onmessage?.(message);
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onclose?.();
  }

  #signal(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      if (process.platform === "win32") this.#child?.kill(signal);
      else process.kill(-pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") this.onerror?.(error as Error);
    }
  }
}

function hasEnded(child: Child): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
