import { isRecord } from "../../../core/shape.ts";
import { cutText } from "../../../core/text.ts";
import { tooHeavy } from "./message-weight.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

const mostBytes = 32 * 1024 * 1024;
/** Banners and logs that went the wrong way; who writes more does not speak the protocol. */
const mostStray = 100;
const shownLength = 300;

/** Messages out of the bytes of an agent's stdout. */
export class MessageLines {
  readonly #mostBytes: number;
  /** The beginning of a line, in a buffer that doubles: one byte at a time costs no more than that. */
  #pending = Buffer.alloc(0);
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
      if (this.#size + part.length > this.#mostBytes) throw this.#tooLong();
      const line = this.#size === 0 ? part : this.#add(part);
      if (this.#size > 0) this.#pending = Buffer.alloc(0);
      this.#size = 0;
      from = end + 1;
      const weight = tooHeavy(line);
      if (weight !== null) throw new Error(`it wrote a message ${weight}`);
      const message = this.#read(line.toString("utf8").trim());
      if (message !== null) yield { message, bytes: line.length };
    }
    if (this.#size + chunk.length - from > this.#mostBytes) throw this.#tooLong();
    this.#add(chunk.subarray(from));
  }

  #add(part: Buffer): Buffer {
    const size = this.#size + part.length;
    if (size > this.#pending.length) {
      const wider = Buffer.allocUnsafe(Math.max(size, Math.min(2 * size, this.#mostBytes)));
      this.#pending.copy(wider, 0, 0, this.#size);
      this.#pending = wider;
    }
    part.copy(this.#pending, this.#size);
    this.#size = size;
    return this.#pending.subarray(0, size);
  }

  /** Logs are passed by, `[INFO] …` too; a broken message is not: whoever waits for it would wait for ever. */
  #read(line: string): JsonObject | null {
    if (line === "") return null;
    const value = parsed(line);
    if (isRecord(value)) return value;
    if (this.#stray.length === 0) this.#stray.push(cutText(line, shownLength));
    else this.#stray.push("");
    if (line.startsWith("{") || line.startsWith("[{") || Array.isArray(value))
      throw new Error(`it wrote a message that cannot be read: ${cutText(line, shownLength)}`);
    if (this.#stray.length > mostStray)
      throw new Error(`it writes what is no message on its stdout: ${this.stray}`);
    return null;
  }

  #tooLong(): Error {
    this.#pending = Buffer.alloc(0);
    this.#size = 0;
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
