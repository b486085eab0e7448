import type { Readable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { LineGatherer } from "../../core/gather-bytes.ts";
import { parseJson } from "../../core/parse-json.ts";
import { cutText, escapeToLine, thrownText } from "../../core/text.ts";
import { within } from "../../core/within.ts";
import type { ChildProcess, ProcessOptions } from "../process/start-process.ts";
import { startCommand } from "../process/start-process.ts";
import type { McpCommand } from "./config.ts";

const shownChars = 300;
/** How long a process that left the group may hold the pipe without writing to it. */
const quietMs = 1000;
const maxBytes = 32 * 1024 * 1024;

export interface ChildOptions extends ProcessOptions {
  readonly parse: (value: unknown) => JSONRPCMessage;
}

/**
 * Messages as lines over the pipes of a child process, under a warden: what it started itself (`npx` does) ends with it,
 * and all of it with us. A pipe that breaks is told by the end of the process.
 */
export class ChildTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;

  readonly #config: McpCommand;
  readonly #options: ChildOptions;
  readonly #lines = new LineGatherer({
    maxBytes,
    tooLong: () => new Error(`a line of more than ${maxBytes} bytes`),
  });
  #starting: Promise<ChildProcess> | null = null;
  #child: ChildProcess | null = null;
  #garbage: string | null = null;
  #isClosed = false;
  /** The chunk that was read last; settles when its messages are delivered. */
  #taking: Promise<void> = Promise.resolve();

  constructor(config: McpCommand, options: ChildOptions) {
    this.#config = config;
    this.#options = options;
  }

  /** How it ended, the end of its stderr, and what it said that was no message: for a diagnostic. */
  get account(): string {
    const garbage = this.#garbage === null ? "" : `it wrote what is no message: ${this.#garbage}`;
    return [this.#child?.report() ?? "", garbage].filter((each) => each !== "").join("; ");
  }

  async start(): Promise<void> {
    const { command, args = [], env = {}, cwd = process.cwd() } = this.#config;
    this.#starting = startCommand({ command, args, env, cwd }, this.#options);
    const child = await this.#starting;
    this.#child = child;
    const pumped = this.#pump(child.stdout);
    void child.closed().then(async () => {
      await this.#untilRead(pumped);
      this.#isClosed = true;
      this.onclose?.();
    });
  }

  /** One chunk after the other, so that a short message never overtakes a long one that is still being parsed. */
  async #pump(stdout: Readable): Promise<void> {
    try {
      for await (const chunk of stdout) {
        this.#taking = this.#take(chunk as Buffer);
        await this.#taking;
      }
    } catch {
      return; // the pipe broke, which the end of the process explains
    }
  }

  /** An answer may still be parsed when its process has ended. A process that left the group may hold the pipe forever. */
  async #untilRead(pumped: Promise<void>): Promise<void> {
    for (;;) {
      const last = this.#taking;
      await last;
      if ((await within(quietMs, pumped)) || last === this.#taking) return;
    }
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (this.#isClosed || stdin === undefined || !stdin.writable)
      return Promise.reject(new Error("the server is not running"));
    return new Promise((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Also while it is starting. SIGTERM, after 2 s SIGKILL; resolves when nothing of it is left. */
  async close(): Promise<void> {
    const child = await this.#starting?.catch(() => null); // whoever started it was told why not
    await child?.stop();
  }

  async #take(chunk: Buffer): Promise<void> {
    try {
      for (const line of this.#lines.split(chunk)) await this.#read(line.toString("utf8"));
    } catch (error) {
      this.#garbage ??= thrownText(error);
      void this.close();
    }
  }

  async #read(line: string): Promise<void> {
    if (line.trim() === "") return;
    let message: JSONRPCMessage;
    try {
      message = this.#options.parse(await parseJson(line));
    } catch {
      this.#garbage ??= escapeToLine(cutText(line, shownChars));
      return;
    }
    this.onmessage?.(message);
  }
}
