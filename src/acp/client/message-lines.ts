import { LineGatherer } from "../../core/gather-bytes.ts";
import { parseJson } from "../../core/parse-json.ts";
import { isRecord } from "../../core/shape.ts";
import type { Steps } from "../../core/slices.ts";
import { Slices } from "../../core/slices.ts";
import { cutText } from "../../core/text.ts";
import { deepestNesting } from "../../protocol/nesting.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

const maxMessageBytes = 32 * 1024 * 1024;
/** Banners and log lines on stdout. An agent that writes more of them does not speak the protocol. */
const maxStrayLines = 100;
const maxShownChars = 300;

/** Splits the stdout of an agent into messages. */
export class MessageLines {
  readonly #lines: LineGatherer;
  #stray = "";
  #strayCount = 0;

  constructor(maxBytes = maxMessageBytes) {
    this.#lines = new LineGatherer({
      maxBytes,
      tooLong: () => new Error(`it wrote a message of more than ${maxBytes} bytes`),
    });
  }

  /** The first line that was not a message, shortened; empty if there was none. */
  get stray(): string {
    return this.#stray;
  }

  /**
   * Yields the messages that a chunk completes. Long ones are parsed in slices, which `signal` stops. Throws if a message
   * cannot be read: the caller would wait forever for its answer.
   */
  async *take(
    chunk: Buffer,
    signal?: AbortSignal,
  ): AsyncGenerator<{ readonly message: JsonObject; readonly bytes: number }> {
    for (const line of this.#lines.split(chunk)) {
      const excess = await new Slices(signal).run(findExcess(line));
      if (excess !== null) throw new Error(`it wrote a message ${excess}`);
      const message = await this.#read(line.toString("utf8").trim(), signal);
      if (message !== null) yield { message, bytes: line.length };
    }
  }

  /** Returns `null` for a line that is not a message, such as `[INFO] …`. Throws for a malformed message. */
  async #read(line: string, signal: AbortSignal | undefined): Promise<JsonObject | null> {
    if (line === "") return null;
    const value = await parse(line, signal);
    if (isRecord(value)) return value;
    if (this.#strayCount++ === 0) this.#stray = cutText(line, maxShownChars);
    if (line.startsWith("{") || line.startsWith("[{") || Array.isArray(value))
      throw new Error(`it wrote an unreadable message: ${cutText(line, maxShownChars)}`);
    if (this.#strayCount > maxStrayLines)
      throw new Error(`it writes text that is not a message to its stdout: ${this.#stray}`);
    return null;
  }
}

async function parse(line: string, signal: AbortSignal | undefined): Promise<unknown> {
  try {
    return await parseJson(line, signal);
  } catch {
    signal?.throwIfAborted();
    return null; // not JSON
  }
}

/** Real messages are large because of their texts. Millions of small values would block the event loop for seconds. */
export const maxValues = 250_000;

/** Shorter lines are parsed quickly, whatever they hold. */
const minCheckedBytes = 64 * 1024;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Which limit a line of JSON exceeds; `null` if it can be parsed. Skips strings with a native search for their end. */
export function* findExcess(line: Buffer): Steps<string | null> {
  if (line.length <= minCheckedBytes) return null;
  let [depth, values, reported, isText] = [0, 0, 0, false];
  for (let at = 0; at < line.length; at++) {
    if (at - reported >= minCheckedBytes) {
      yield at - reported;
      reported = at;
    }
    if (isText) {
      at = line.indexOf(quote, at);
      if (at === -1) return null;
      isText = isEscaped(line, at);
      continue;
    }
    const byte = line[at];
    if (byte === quote) isText = true;
    else if (byte === comma) values++;
    else if (byte === openList || byte === openObject) {
      depth++;
      values++;
    } else if (byte === closeList || byte === closeObject) depth--;
    if (depth > deepestNesting) return `of more than ${deepestNesting} levels`;
    if (values > maxValues) return `of more than ${maxValues} values`;
  }
  return null;
}

function isEscaped(line: Buffer, at: number): boolean {
  let before = at;
  while (line[before - 1] === backslash) before--;
  return (at - before) % 2 === 1;
}
