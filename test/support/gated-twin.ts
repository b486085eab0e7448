import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Twin, TwinOptions } from "../../src/entry-testing.ts";
import { startTwin } from "../../src/entry-testing.ts";

/** A twin behind a gate. Every request waits for `inspect` before the twin receives it. */
export interface GatedTwin {
  readonly twin: Twin;
  /** The gate's base URL. */
  readonly url: string;
  close(): Promise<void>;
}

/** `inspect` receives the exact text of each request body. */
export async function startGatedTwin(
  options: TwinOptions,
  inspect: (body: string) => Promise<void>,
): Promise<GatedTwin> {
  const twin = await startTwin(options);
  const { origin, pathname } = new URL(twin.url);
  const server = createServer((request, response) => {
    forward(request, response, origin, inspect).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    await closeServer(server);
    await twin.close();
  };
  return { twin, url: `http://127.0.0.1:${port}${pathname}`, close };
}

async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  origin: string,
  inspect: (body: string) => Promise<void>,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  await inspect(body.toString("utf8"));
  const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
  const given = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
  const { method = "GET", url = "/" } = request;
  const answer = await fetch(origin + url, {
    method,
    headers: given,
    ...(method === "GET" ? {} : { body }),
  });
  response.writeHead(answer.status, {
    "content-type": answer.headers.get("content-type") ?? "application/json",
  });
  response.end(Buffer.from(await answer.arrayBuffer()));
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
