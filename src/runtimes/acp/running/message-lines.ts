import { isRecord } from "../../../core/shape.ts";
import { cutText } from "../../../core/text.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

const mostBytes = 32 * 1024 * 1024;
/** Banners and logs that went the wrong way; who writes more does not speak the protocol. */
const mostStray = 100;
const shownLength = 300;

/** Messages out of the bytes of an agent's stdout. */
export class MessageLines {
  readonly #mostBytes: number;
  #pending: Buffer[] = [];
  #size = 0;
  #stray: string[] = [];

  constructor(most = mostBytes) {
    this.#mostBytes = most;
  }

  /** What it wrote that is no message, as it began; blank: nothing. */
  get stray(): string {
    return this.#stray[0] ?? "";
  }

  /** Throws where what comes cannot be read any further: a message may have been lost, and nobody would know. */
  *take(chunk: Buffer): Generator<{ readonly message: JsonObject; readonly bytes: number }> {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const part = chunk.subarray(from, end);
      const line = this.#pending.length === 0 ? part : Buffer.concat([...this.#pending, part]);
      this.#pending = [];
      this.#size = 0;
      from = end + 1;
      if (line.length > this.#mostBytes) throw this.#tooLong();
      const message = this.#read(line.toString("utf8").trim());
      if (message !== null) yield { message, bytes: line.length };
    }
    this.#size += chunk.length - from;
    if (this.#size > this.#mostBytes) throw this.#tooLong();
    if (from < chunk.length) this.#pending.push(chunk.subarray(from));
  }

  /** Logs are passed by, a broken message is not: whoever waits for it would wait for ever. */
  #read(line: string): JsonObject | null {
    if (line === "") return null;
    const value = parsed(line);
    if (isRecord(value) && !Array.isArray(value)) return value;
    if (this.#stray.length === 0) this.#stray.push(cutText(line, shownLength));
    else this.#stray.push("");
    if (line.startsWith("{") || line.startsWith("["))
      throw new Error(`it wrote a message that cannot be read: ${cutText(line, shownLength)}`);
    if (this.#stray.length > mostStray)
      throw new Error(`it writes what is no message on its stdout: ${this.stray}`);
    return null;
  }

  #tooLong(): Error {
    this.#pending = [];
    return new Error(`it wrote a message of more than ${this.#mostBytes} bytes`);
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null; // no JSON: the caller says what that means
  }
}
