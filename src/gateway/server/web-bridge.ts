import type { IncomingMessage, ServerResponse } from "node:http";
import { SkeinError } from "../../core/errors.ts";
import { RequestRefusedError } from "../methods/dispatch.ts";
import type { HttpExchange } from "./exchange.ts";
import { apiHeaders } from "./exchange.ts";
import { noSuch } from "./refusals.ts";
import type { BodyLimits } from "./request-body.ts";
import { hasBody, readBody } from "./request-body.ts";

/** Bridges to handlers that take a web `Request` and return a web `Response`. */

/**
 * Passes the request with its raw body to a handler and sends the handler's response. If the body is rejected, the
 * client receives that error, regardless of what the handler returns.
 */
export async function forwardToWebHandler(
  exchange: HttpExchange,
  url: string,
  limits: BodyLimits,
  ask: (request: Request) => Promise<Response>,
): Promise<void> {
  const refusals: RequestRefusedError[] = [];
  const given = webRequest(exchange, url, limits, (refusal) => void refusals.push(refusal));
  try {
    const answer = await ask(given);
    if (refusals.length === 0) return await sendWeb(exchange, answer);
    await answer.body?.cancel();
  } catch (error) {
    if (refusals.length === 0) throw error;
  }
  throw refusals[0];
}

function webRequest(
  exchange: HttpExchange,
  url: string,
  limits: BodyLimits,
  refused: (refusal: RequestRefusedError) => void,
): Request {
  const { request, signal } = exchange;
  const { method = "GET" } = request;
  const isBodied = method !== "GET" && method !== "HEAD" && hasBody(request);
  return new Request(new URL(request.url ?? "/", url), {
    method,
    headers: headersOf(request),
    signal,
    ...(isBodied ? { body: lazyBody(exchange, limits, refused), duplex: "half" as const } : {}),
  });
}

/**
 * A stream with the whole body as one chunk. The body is read only when the handler requests it, so a handler can
 * reject a request by its headers. If the body is rejected, the handler receives a known error so that it does not
 * report an unexpected failure.
 */
function lazyBody(
  exchange: HttpExchange,
  limits: BodyLimits,
  refused: (refusal: RequestRefusedError) => void,
): ReadableStream<Uint8Array> {
  const { request } = exchange;
  const read = async () => {
    try {
      const bytes = await readBody(request, limits);
      await exchange.recheck();
      return bytes;
    } catch (error) {
      if (!(error instanceof RequestRefusedError)) throw error;
      refused(error);
      throw new SkeinError("body_too_large", { bytes: limits.maxBytes }, { cause: error });
    }
  };
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const bytes = await read();
        if (bytes.length > 0) controller.enqueue(bytes);
        controller.close();
      },
      cancel: () => void request.resume(),
    },
    { highWaterMark: 0 },
  );
}

/** Streams a web response. Resolves when it has been sent or the client has disconnected. */
async function sendWeb({ response, signal, rules }: HttpExchange, answer: Response): Promise<void> {
  // The token was revoked before there was a response.
  if (response.headersSent) return answer.body?.cancel();
  const headers = new Headers(apiHeaders);
  for (const [name, value] of answer.headers) {
    if (name === "set-cookie") headers.append(name, value);
    else headers.set(name, value);
  }
  if (rules.isLast) headers.set("connection", "close");
  response.writeHead(answer.status, [...headers].flat());
  if (answer.body === null) return void response.end();
  response.flushHeaders();
  response.on("timeout", () => response.destroy());
  await streamTo(response, answer.body, signal, rules.stalledMs);
}

/** Writes the stream until it ends, the client disconnects, or the server shuts down. */
async function streamTo(
  response: ServerResponse,
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  stalledMs: number,
): Promise<void> {
  const reader = body.getReader();
  const cancel = () => void reader.cancel(signal.reason).catch(() => undefined);
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (!response.write(part.value)) await drained(response, stalledMs);
  }
  response.setTimeout(stalledMs);
  response.end();
}

/**
 * Resolves when the response accepts more data or is closed. A stream can be silent for a long time, but it is
 * abandoned if the client stops reading.
 */
function drained(response: ServerResponse, stalledMs: number): Promise<void> {
  if (response.closed) return Promise.resolve();
  response.setTimeout(stalledMs);
  return new Promise((resolve) => {
    const go = () => {
      response.off("drain", go).off("close", go);
      response.setTimeout(0);
      resolve();
    };
    response.on("drain", go).on("close", go);
  });
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] as string, rawHeaders[index + 1] as string);
  }
  return headers;
}

type Act = (exchange: HttpExchange) => Promise<void>;

/** The maximum size of a body that arrives in one chunk. */
const onePiece = 64 * 1024;

/**
 * `POST /channels/<id>/inbound`: requests are signed, so they need no token. The signature can be verified only after
 * the body has arrived, so unauthenticated bodies share one budget. The first 64 KiB of each body do not count toward
 * the budget.
 */
export function inbound(url: () => string): Act {
  return async (exchange) => {
    const { app, tuning, unsignedBodies } = exchange.context;
    const take = app.webhook(exchange.name);
    if (take === null) throw new RequestRefusedError(noSuch("such channel"));
    exchange.hold(`channel ${exchange.name}`);
    const reserve = exchange.holdBytes(unsignedBodies, "all", onePiece);
    const { frameBytes: maxBytes, bodyChunks: maxChunks } = tuning;
    await forwardToWebHandler(exchange, url(), { maxBytes, maxChunks, reserve }, take);
  };
}

/**
 * `/mcp`, for requests with a token. The body limit is slightly higher than MCP's own so that the MCP handler itself
 * rejects longer bodies.
 */
export function mcp(url: () => string): Act {
  return async (exchange) => {
    const principal = await exchange.enter();
    const { app, tuning, bodies } = exchange.context;
    const reserve = exchange.holdBytes(bodies, principal.tokenId);
    const { frameBytes, bodyChunks: maxChunks } = tuning;
    const limits = { maxBytes: frameBytes + onePiece, maxChunks, reserve };
    await forwardToWebHandler(exchange, url(), limits, (request) => app.mcp(request, principal));
  };
}
