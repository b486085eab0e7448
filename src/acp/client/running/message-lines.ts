import { LineGatherer } from "../../../core/gather-bytes.ts";
import { parseJson } from "../../../core/parse-json.ts";
import { isRecord } from "../../../core/shape.ts";
import { Slices } from "../../../core/slices.ts";
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

  /**
   * Yields the messages that this chunk completes. Long ones are parsed in slices, and `signal` stops that. Throws when the rest
   * cannot be read: a message may have been lost, and its reader would wait forever.
   */
  async *take(
    chunk: Buffer,
    signal?: AbortSignal,
  ): AsyncGenerator<{ readonly message: JsonObject; readonly bytes: number }> {
    for (const line of this.#lines.split(chunk)) {
      const weight = await new Slices(signal).run(tooHeavy(line));
      if (weight !== null) throw new Error(`it wrote a message ${weight}`);
      const message = await this.#read(line.toString("utf8").trim(), signal);
      if (message !== null) yield { message, bytes: line.length };
    }
  }

  /** Lines of logs, such as `[INFO] …`, are skipped. A broken message is an error: its reader would wait forever. */
  async #read(line: string, signal: AbortSignal | undefined): Promise<JsonObject | null> {
    if (line === "") return null;
    const value = await parsed(line, signal);
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

async function parsed(line: string, signal: AbortSignal | undefined): Promise<unknown> {
  try {
    return await parseJson(line, signal);
  } catch {
    signal?.throwIfAborted();
    return null; // not JSON: the caller decides what that means
  }
}
