import type { Readable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { within } from "../../core/concurrency.ts";
import { LineGatherer } from "../../core/gather-bytes.ts";
import { parseJson } from "../../core/parse-json.ts";
import { cutText, escapeToLine, thrownText } from "../../core/text.ts";
import type { ChildProcess, ProcessOptions, ProcessSpec } from "../process/start-process.ts";
import { startCommand } from "../process/start-process.ts";

const shownChars = 300;
/** How long to wait for output while only a process that left the group still holds the pipe. */
const quietMs = 1000;
const maxBytes = 32 * 1024 * 1024;

export interface ChildOptions extends ProcessOptions {
  readonly parse: (value: unknown) => JSONRPCMessage;
}

/**
 * Exchanges messages as lines over a child process's pipes. Closing the transport terminates the process and everything
 * it started.
 */
export class ChildTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;

  readonly #spec: ProcessSpec;
  readonly #options: ChildOptions;
  readonly #lines = new LineGatherer({
    maxBytes,
    tooLong: () => new Error(`a line of more than ${maxBytes} bytes`),
  });
  #starting: Promise<ChildProcess> | null = null;
  #child: ChildProcess | null = null;
  #garbage: string | null = null;
  #isClosed = false;
  /** Settles when the messages in the last chunk have been delivered. */
  #delivery: Promise<void> = Promise.resolve();

  constructor(spec: ProcessSpec, options: ChildOptions) {
    this.#spec = spec;
    this.#options = options;
  }

  /** For diagnostics: how the process exited, the end of its stderr, and the first line that was not a message. */
  get report(): string {
    const garbage = this.#garbage === null ? "" : `it wrote a line that is not a message: ${this.#garbage}`;
    return [this.#child?.report() ?? "", garbage].filter((each) => each !== "").join("; ");
  }

  async start(): Promise<void> {
    this.#starting = startCommand(this.#spec, this.#options);
    const child = await this.#starting;
    this.#child = child;
    const pumped = this.#pump(child.stdout);
    void child.closed().then(async () => {
      await this.#finishReading(pumped);
      this.#isClosed = true;
      this.onclose?.();
    });
  }

  /** Reads chunks in order, so that a short message never overtakes a long one that is still being parsed. */
  async #pump(stdout: Readable): Promise<void> {
    try {
      for await (const chunk of stdout) {
        this.#delivery = this.#take(chunk as Buffer);
        await this.#delivery;
      }
    } catch {
      return; // The pipe broke. The process's exit report explains why.
    }
  }

  /** Waits for messages that are still being parsed, but not for processes that left the group and hold the pipe. */
  async #finishReading(pumped: Promise<void>): Promise<void> {
    for (;;) {
      const last = this.#delivery;
      await last;
      if ((await within(quietMs, pumped)) || last === this.#delivery) return;
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

  /** Can be called during startup. Resolves when the process and everything it started have exited. */
  async close(): Promise<void> {
    const child = await this.#starting?.catch(() => null); // `start` has already reported the error.
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
