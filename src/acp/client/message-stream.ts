import type { Readable, Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk/unstable";
import { methods } from "@agentclientprotocol/sdk/unstable";
import { LineGatherer } from "../../core/gather-bytes.ts";
import { isRecord } from "../../core/is-record.ts";
import { parseJson } from "../../core/parse-json.ts";
import type { Steps } from "../../core/slices.ts";
import { Slices } from "../../core/slices.ts";
import { cutText } from "../../core/text.ts";
import { deepestNesting } from "../../protocol/nesting.ts";

const refusedCode = -32000;
/** The only notification besides updates that Skein handles. */
const cancelRequest = "$/cancel_request";

export interface StreamHandlers {
  readonly lines: MessageLines;
  /** Called for each `session/update` before any later response is handled. Reading waits for the promise. */
  onUpdate(params: unknown, bytes: number): Promise<void> | undefined;
  onReadError(error: Error): void;
}

/**
 * Presents an agent's pipes as a stream for the SDK. Updates bypass the SDK, because it would log unknown updates to
 * stderr, and would deliver updates after responses that the agent sent later. Responses to unknown requests are
 * dropped, because the SDK would log them too.
 */
export function messageStream(
  { stdin, stdout }: { readonly stdin: Writable; readonly stdout: Readable },
  handlers: StreamHandlers,
): Stream {
  const requestIds = new Set<unknown>();
  const limiter = new RequestLimiter();
  const write = (message: AnyMessage | JsonObject): Promise<void> => writeLine(stdin, message);
  // Ignored, because the process's exit status explains a broken pipe better.
  stdin.on("error", () => undefined);

  const cancelled = new AbortController();
  let controller: ReadableStreamDefaultController<AnyMessage> | null = null;
  const deliver = (messages: readonly JsonObject[]): void => {
    if (cancelled.signal.aborted) return;
    for (const message of messages) controller?.enqueue(message as AnyMessage);
  };
  // Reading pauses until a rejection has been written, so nothing more is read from an agent that does not read its
  // rejections.
  const take = (message: JsonObject, bytes: number): Promise<void> | undefined => {
    const kind = kindOf(message);
    if (kind !== "request") {
      if (kind === "cancel" || (kind === "response" && requestIds.delete(message.id))) deliver([message]);
      return undefined;
    }
    const admitted = limiter.admit(message, bytes);
    if (typeof admitted !== "string") return void deliver(admitted);
    const error = { code: refusedCode, message: admitted };
    return write({ jsonrpc: "2.0", id: message.id, error }).catch(() => undefined);
  };

  const readable = new ReadableStream<AnyMessage>({
    start: (given) => {
      controller = given;
      void readMessages(stdout, handlers, take, cancelled.signal)
        .catch((error: Error) =>
          cancelled.signal.aborted || isPipeError(error) ? undefined : handlers.onReadError(error),
        )
        .then(() => (cancelled.signal.aborted ? undefined : given.close()));
    },
    cancel: () => {
      cancelled.abort();
      stdout.destroy();
    },
  });
  const writable = new WritableStream<AnyMessage>({
    write: async (message) => {
      const isRequest = "method" in message && "id" in message;
      if (isRequest) requestIds.add(message.id);
      await write(message);
      if (!isRequest && "id" in message) deliver(limiter.release(message.id));
    },
  });
  return { readable, writable };
}

/** Returns `null` for a message that the SDK would only log as an error. */
function kindOf(message: JsonObject): "request" | "cancel" | "response" | null {
  const { jsonrpc, id, method } = message;
  if (jsonrpc !== "2.0") return null;
  if (!("method" in message)) return "response";
  if (!("id" in message)) return method === cancelRequest ? "cancel" : null;
  const isId = id === null || typeof id === "string" || typeof id === "number";
  return isId && typeof method === "string" ? "request" : null;
}

/** Pipe errors are not reported, because the process's exit status explains them better. */
function isPipeError(error: Error): boolean {
  return "code" in error;
}

/** Yields to the event loop after each chunk so that a fast agent does not block the process. */
async function readMessages(
  stdout: Readable,
  { lines, onUpdate }: StreamHandlers,
  take: (message: JsonObject, bytes: number) => Promise<void> | undefined,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of stdout) {
    for await (const { message, bytes } of lines.take(chunk as Buffer, signal)) {
      if (message.method === "session/update" && !("id" in message)) await onUpdate(message.params, bytes);
      else await take(message, bytes);
      // Lets a response reach its caller before later updates, which do not belong to the turn.
      if (!("method" in message)) await nextTurn();
    }
    await nextTurn();
  }
}

function writeLine(stdin: Writable, message: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
  });
}

const maxRequests = 256;
/** The maximum total size of pending requests. A single request can be as large as a message. */
const maxRequestBytes = 64 * 1024 * 1024;
/** The maximum number of concurrent requests whose responses can be large. Further requests wait in order. */
const maxLargeRequests = 4;
const largeMethods: ReadonlySet<unknown> = new Set([
  methods.client.fs.readTextFile,
  methods.client.terminal.output,
]);

/** Limits an agent's pending requests so that they never use more memory than a few large files would. */
export class RequestLimiter {
  /** Keyed by ID. An entry exists until its response has been written. */
  readonly #pending = new Map<unknown, { readonly bytes: number; readonly isLarge: boolean }>();
  readonly #waiting: JsonObject[] = [];
  #bytes = 0;
  #largeCount = 0;

  /** Returns the requests to handle now, or a sentence that explains why this one is rejected. */
  admit(message: JsonObject, bytes: number): readonly JsonObject[] | string {
    const { id, method } = message;
    if (this.#pending.has(id)) return "A request with this ID is already pending.";
    if (this.#pending.size >= maxRequests)
      return `More than ${maxRequests} requests are pending. Wait for responses.`;
    if (this.#bytes > 0 && this.#bytes + bytes > maxRequestBytes)
      return `Pending requests exceed ${maxRequestBytes} bytes. Wait for responses.`;
    const isLarge = largeMethods.has(method);
    this.#pending.set(id, { bytes, isLarge });
    this.#bytes += bytes;
    if (!isLarge) return [message];
    this.#waiting.push(message);
    return this.#next();
  }

  /** Called when a response has been written. Returns the requests to handle next. */
  release(id: unknown): readonly JsonObject[] {
    const request = this.#pending.get(id);
    if (request === undefined) return [];
    this.#pending.delete(id);
    this.#bytes -= request.bytes;
    if (request.isLarge) this.#largeCount--;
    return this.#next();
  }

  #next(): readonly JsonObject[] {
    if (this.#largeCount >= maxLargeRequests) return [];
    const next = this.#waiting.shift();
    if (next === undefined) return [];
    this.#largeCount++;
    return [next];
  }
}

type JsonObject = Readonly<Record<string, unknown>>;

const maxMessageBytes = 32 * 1024 * 1024;
/** The limit for banners and log lines on stdout. An agent that exceeds it does not implement the protocol. */
const maxStrayLines = 100;
const maxShownChars = 300;

/** Splits an agent's stdout into messages. */
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

  /** Returns the first line that was not a message, truncated. Empty if there was none. */
  get stray(): string {
    return this.#stray;
  }

  /**
   * Yields the messages that a chunk completes. Long messages are parsed in chunks, and `signal` stops the parsing.
   * Throws if a message cannot be parsed, because its sender would otherwise wait forever for the response.
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
      throw new Error(`its stdout contains text that is not a message: ${this.#stray}`);
    return null;
  }
}

async function parse(line: string, signal: AbortSignal | undefined): Promise<unknown> {
  try {
    return await parseJson(line, signal);
  } catch {
    signal?.throwIfAborted();
    return null; // Not JSON.
  }
}

/**
 * The maximum number of values in a message. Real messages are large because of the text that they contain. Parsing
 * millions of small values would block the event loop for seconds.
 */
export const maxValues = 250_000;

/** Shorter lines are parsed quickly, regardless of what they contain. */
const minCheckedBytes = 64 * 1024;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Returns the limit that a line of JSON exceeds, or `null` if the line can be parsed. Skips over strings by searching
 * for their end natively.
 */
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
