import { LineGatherer } from "../../../core/gather-bytes.ts";
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
  readonly #lines: LineGatherer;
  #stray: string[] = [];

  constructor(most = mostBytes) {
    this.#lines = new LineGatherer({
      maxBytes: most,
      tooLong: () => new Error(`it wrote a message of more than ${most} bytes`),
    });
  }

  /** What it wrote that is no message, as it began; blank: nothing. */
  get stray(): string {
    return this.#stray[0] ?? "";
  }

  /** Throws where what comes cannot be read any further: a message may have been lost, and nobody would know. */
  *take(chunk: Buffer): Generator<{ readonly message: JsonObject; readonly bytes: number }> {
    for (const line of this.#lines.split(chunk)) {
      const weight = tooHeavy(line);
      if (weight !== null) throw new Error(`it wrote a message ${weight}`);
      const message = this.#read(line.toString("utf8").trim());
      if (message !== null) yield { message, bytes: line.length };
    }
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
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null; // no JSON: the caller says what that means
  }
}
