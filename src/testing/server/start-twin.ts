import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { ByteGatherer } from "../../core/gather-bytes.ts";
import { thrownText } from "../../core/text.ts";
import type { Refusal, Scripted, TwinApi, TwinLimits, TwinRequest, WireFormat } from "../twins/contract.ts";
import { formatOf } from "./check-request.ts";
import { checkScripts, playScript, sendJson } from "./play-script.ts";

/** Not an `import`, because importing this module would also load its members `fetch` and `WebSocket`. */
const { createServer } = process.getBuiltinModule("node:http");

/** A request and whether it was rejected. */
export interface ReceivedRequest extends TwinRequest {
  /** `null` if the request was accepted. */
  readonly refusal: Refusal | null;
}

/**
 * A loopback server that implements a provider's wire format. It sends scripted replies and rejects requests that the
 * provider would reject.
 */
export interface Twin {
  readonly api: TwinApi;
  /** The `baseURL` for the AI SDK. */
  readonly url: string;
  /** All requests, rejected or not, oldest first. Beyond 1,000 requests or 256 MB of bodies, the oldest are dropped. */
  readonly requests: readonly ReceivedRequest[];
  /** Queues replies, one for each accepted request. A rejected request does not consume a reply. */
  enqueue(...scripted: readonly Scripted[]): void;
  /** Closes every connection. Resolves when the server has stopped listening. */
  close(): Promise<void>;
}

/** Options for `startTwin`. */
export interface TwinOptions {
  readonly api: TwinApi;
  /** The first replies. More can be queued later. */
  readonly replies?: readonly Scripted[];
  /** Returns the reply to use if none is queued. Defaults to a short fixed text. */
  readonly otherwise?: (request: TwinRequest) => Scripted;
  /** In estimated tokens. Defaults to the context window of the provider's usual models. */
  readonly contextWindow?: number;
}

const maxConnections = 256;
/** Higher than every limit for which a twin has its own error. */
const maxBodyBytes = 64 * 1024 * 1024;
/** The maximum total size of all bodies that are being read. */
const maxOpenBytes = 256 * 1024 * 1024;
const maxLoggedRequests = 1000;
const maxLoggedBytes = 256 * 1024 * 1024;

/**
 * Starts a provider's twin on a free loopback port.
 *
 * @example
 * ```ts
 * import { createAnthropic } from "@ai-sdk/anthropic";
 * import { generateText } from "ai";
 * import { startTwin } from "skein/testing";
 * const twin = await startTwin({
 *   api: "anthropic-messages",
 *   replies: [{ content: [{ type: "text", text: "Kyoto, in November." }] }],
 * });
 * const model = createAnthropic({ baseURL: twin.url, apiKey: "any" })("claude-sonnet-4-5");
 * const { text } = await generateText({ model, prompt: "Where, and when?" });
 * await twin.close();
 * ```
 */
export async function startTwin(options: TwinOptions): Promise<Twin> {
  const format = formatOf(options.api);
  const { contextWindow = format.contextWindow, otherwise = defaultReply, replies = [] } = options;
  const handler = new RequestHandler(format, { contextWindow }, otherwise);
  handler.enqueue(replies);
  const server = createServer((incoming, response) => {
    handler.handle(incoming, response).catch(() => response.destroy());
  });
  server.maxConnections = maxConnections;
  // If the server closed an idle connection just as a busy client reused it, the request would fail in a way that does
  // not happen with a real provider.
  Object.assign(server, { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  let closing: Promise<void> | null = null;
  return {
    api: options.api,
    url: `http://127.0.0.1:${port}${format.basePath}`,
    requests: handler.log.requests,
    enqueue: (...scripted) => handler.enqueue(scripted),
    close: () => {
      closing ??= closeServer(server);
      return closing;
    },
  };
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

function defaultReply(): Scripted {
  return { content: [{ type: "text", text: "The twin has nothing to add." }] };
}

/** Rejects requests that the provider would reject, and answers all others from the queue. */
class RequestHandler {
  readonly log = new RequestLog();
  readonly #format: WireFormat;
  readonly #limits: TwinLimits;
  readonly #queue: Scripted[] = [];
  readonly #otherwise: (request: TwinRequest) => Scripted;
  readonly #reader = new BodyReader();
  readonly #newId = idSource();

  constructor(format: WireFormat, limits: TwinLimits, otherwise: (request: TwinRequest) => Scripted) {
    this.#format = format;
    this.#limits = limits;
    this.#otherwise = otherwise;
  }

  enqueue(scripted: readonly Scripted[]): void {
    checkScripts(scripted);
    this.#queue.push(...scripted);
  }

  async handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader("request-id", `req_011${this.#newId()}`);
    const request = await this.#receive(incoming);
    if (request === null) return;
    if (request.refusal !== null) {
      const { status, body, headers } = request.refusal;
      return sendJson(response, status, body, headers);
    }
    try {
      await playScript(this.#nextReply(request), request, this.#format, this.#newId, response);
    } catch (error) {
      // A script that cannot be written as JSON, such as one with a bigint, must not leave the client waiting.
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, this.#format.errorBody(500, thrownText(error)));
    }
  }

  #nextReply(request: TwinRequest): Scripted {
    const queued = this.#queue.shift();
    if (queued !== undefined) return queued;
    const scripted = this.#otherwise(request);
    checkScripts([scripted]);
    return scripted;
  }

  /** Returns `null` if the client disconnected before the end of its request. */
  async #receive(incoming: IncomingMessage): Promise<ReceivedRequest | null> {
    const { method = "", url: path = "" } = incoming;
    const request: TwinRequest = { method, path, headers: joinHeaders(incoming), body: undefined };
    const read = await this.#reader.read(incoming).catch((error: unknown) => ({ error }));
    if (read === null) {
      const refusal = this.#refuse(413, "body_too_large", "Request exceeds the maximum size");
      return this.log.add({ ...request, refusal }, 0);
    }
    if (!("error" in read)) return this.log.add(this.#check(request, read), read.bytes);
    if (!incoming.complete) return null;
    return this.log.add({ ...request, refusal: this.#refuseJson("not_utf8", read.error) }, 0);
  }

  /** The size is the number of bytes received, regardless of the client's header. */
  #check(request: TwinRequest, { text, bytes }: ReceivedBody): ReceivedRequest {
    const headers = { ...request.headers, "content-length": String(bytes) };
    const unparsed = { ...request, headers, body: text };
    if (!this.#format.serves(request))
      return { ...unparsed, refusal: this.#refuse(404, "not_served", "Not Found") };
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch (error) {
      return { ...unparsed, refusal: this.#refuseJson("not_json", error) };
    }
    const parsed = { ...unparsed, body };
    return { ...parsed, refusal: this.#format.check(parsed, this.#limits) };
  }

  #refuse(status: number, rule: string, message: string): Refusal {
    return { status, rule, body: this.#format.errorBody(status, message) };
  }

  #refuseJson(rule: string, error: unknown): Refusal {
    return this.#refuse(400, rule, `The request body is not valid JSON: ${thrownText(error)}`);
  }
}

function joinHeaders({ headers }: IncomingMessage): Readonly<Record<string, string | undefined>> {
  const join = (value: string | string[] | undefined) => (Array.isArray(value) ? value.join(", ") : value);
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, join(value)]));
}

interface ReceivedBody {
  readonly text: string;
  readonly bytes: number;
}

/** Limits the total size of all requests that are being read. */
class BodyReader {
  #held = 0;

  /** Returns `null` if the body is too large. Throws if the client disconnects, or if the bytes are not UTF-8. */
  async read(incoming: IncomingMessage): Promise<ReceivedBody | null> {
    const gathered = new ByteGatherer({ maxBytes: maxBodyBytes });
    let heldBefore = 0;
    try {
      for await (const chunk of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        const isTaken = gathered.append(chunk);
        this.#held += gathered.capacity - heldBefore;
        heldBefore = gathered.capacity;
        if (isTaken && this.#held <= maxOpenBytes) continue;
        // Some clients read the response only after sending the whole request, so the rest of it is read and discarded.
        incoming.resume();
        return null;
      }
      const { length: bytes } = gathered;
      return { text: new TextDecoder("utf-8", { fatal: true }).decode(gathered.take()), bytes };
    } finally {
      this.#held -= heldBefore;
    }
  }
}

/** A request log that drops the oldest requests beyond its limits. */
export class RequestLog {
  readonly requests: ReceivedRequest[] = [];
  readonly #sizes: number[] = [];
  #bytes = 0;

  add(request: ReceivedRequest, bytes: number): ReceivedRequest {
    this.requests.push(request);
    this.#sizes.push(bytes);
    this.#bytes += bytes;
    while (
      this.requests.length > maxLoggedRequests ||
      (this.#bytes > maxLoggedBytes && this.requests.length > 1)
    ) {
      this.requests.shift();
      this.#bytes -= this.#sizes.shift() ?? 0;
    }
    return request;
  }
}

/** Generates IDs of 24 letters and digits that differ between twins. */
function idSource(): () => string {
  const seed = randomBytes(16).toString("hex");
  let count = 0;
  return () => {
    count += 1;
    const hash = createHash("sha256").update(`${seed}${count}`).digest("base64url");
    return hash.replaceAll("-", "a").replaceAll("_", "b").slice(0, 24);
  };
}
