import type { IncomingMessage, ServerResponse } from "node:http";
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
  // Its token ended before there was an answer.
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
  await streamTo(response, answer.body, signal);
}

/** A stream ends by itself, with its client, or with the server; then it was whole as far as it went. */
async function streamTo(
  response: ServerResponse,
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const reader = body.getReader();
  const cancel = () => void reader.cancel(signal.reason).catch(() => undefined);
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (!response.write(part.value)) await drained(response);
  }
  response.end();
}

/** Once it takes more, or nobody is there to take it. */
function drained(response: ServerResponse): Promise<void> {
  if (response.closed) return Promise.resolve();
  return new Promise((resolve) => {
    const go = () => {
      response.off("drain", go).off("close", go);
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
