import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeStream } from "node:stream/web";
import { apiHeaders } from "../../auth/headers.ts";
import { bodyChunks, hasBody } from "./bodies.ts";
import type { Exchange } from "./exchange.ts";

/** Requests and answers as the web has them, for parts that are no part of any server. */

/** A request with its raw body, of at most so many bytes. */
export function webRequest({ request, signal }: Exchange, url: string, most: number): Request {
  const { method = "GET" } = request;
  const isBodied = method !== "GET" && method !== "HEAD" && hasBody(request);
  return new Request(new URL(request.url ?? "/", url), {
    method,
    headers: headersOf(request),
    signal,
    ...(isBodied ? { body: ReadableStream.from(bodyChunks(request, most)), duplex: "half" as const } : {}),
  });
}

/** An answer of the web, its body as it comes. Resolves when it has gone out, or nobody wants it. */
export async function sendWeb({ response, signal, rules }: Exchange, answer: Response): Promise<void> {
  const headers = new Headers(apiHeaders);
  for (const [name, value] of answer.headers) {
    if (name === "set-cookie") headers.append(name, value);
    else headers.set(name, value);
  }
  if (rules.isLast) headers.set("connection", "close");
  response.writeHead(answer.status, [...headers].flat());
  if (answer.body === null) return void response.end();
  response.flushHeaders();
  await streamTo(response, answer.body as NodeStream<Uint8Array>, signal);
}

/** A stream ends with the client, with the server, or by itself; none of them is a mistake. */
async function streamTo(
  response: ServerResponse,
  body: NodeStream<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await pipeline(Readable.fromWeb(body), response, { signal });
  } catch (error) {
    response.destroy();
    if (!signal.aborted) throw error;
  }
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] as string, rawHeaders[index + 1] as string);
  }
  return headers;
}
