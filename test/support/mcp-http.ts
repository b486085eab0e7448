// The server in `mcp-tools.ts` over Streamable HTTP on loopback, with sessions that it can forget.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { toolServer } from "./mcp-tools.ts";

export interface HttpToolServer {
  readonly url: string;
  readonly requests: readonly Request[];
  forget(): void;
  close(): Promise<void>;
}

export async function startHttpToolServer(): Promise<HttpToolServer> {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const requests: Request[] = [];
  const transportFor = async (request: Request) => {
    const known = sessions.get(request.headers.get("mcp-session-id") ?? "");
    if (known !== undefined) return known;
    if (request.headers.has("mcp-session-id")) return null;
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await toolServer("tools").connect(transport);
    return transport;
  };
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const request = await requestOf(incoming);
    requests.push(request.clone());
    const transport = await transportFor(request);
    const response =
      (await transport?.handleRequest(request)) ?? new Response("no such session", { status: 404 });
    outgoing.writeHead(response.status, Object.fromEntries(response.headers)).flushHeaders();
    if (response.body === null) outgoing.end();
    else await pipeline(Readable.fromWeb(response.body as ReadableStream), outgoing);
  };
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    requests,
    forget: () => sessions.clear(),
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function requestOf(incoming: IncomingMessage): Promise<Request> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const { method = "GET", url = "/", headers } = incoming;
  return new Request(`http://127.0.0.1${url}`, {
    method,
    headers: Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]),
    ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
  });
}
