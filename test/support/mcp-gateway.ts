// A real Skein behind MCP: over HTTP on loopback with the gateway's own checks of names, or anything that takes its parts.

import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { findHostProblem } from "../../src/gateway/auth/allowed-hosts.ts";
import type { Principal } from "../../src/gateway/auth/principal.ts";
import { createMcp } from "../../src/gateway/mcp/create-mcp.ts";
import type { McpApp } from "../../src/gateway/mcp/mcp-context.ts";
import { skeinMcpApp } from "../../src/gateway/mcp/mcp-context.ts";
import type { Skein } from "../../src/index.ts";
import { closeLater } from "./mcp-client.ts";

export function principal(over: Partial<Principal> = {}): Principal {
  return { tokenId: "a1b2c3", name: "test", scopes: ["read", "write"], user: null, expiresAt: null, ...over };
}

export function partsOf(skein: Skein, reported: unknown[] = []): McpApp {
  return skeinMcpApp(skein, {
    version: "1.2.3",
    defaultAgentId: "main",
    scope: "per-sender",
    isCurrent: () => true,
    report: (error) => reported.push(error),
  });
}

export interface McpGateway {
  readonly url: string;
  readonly reported: unknown[];
  /** Whoever shows this token. */
  as(token: string, who: Principal): void;
}

/** The server's rim in short: who is it, under which name, and then on. Without a token it is the first one. */
export async function startMcp(skein: Skein, first: Principal = principal()): Promise<McpGateway> {
  const reported: unknown[] = [];
  const mcp = createMcp(partsOf(skein, reported));
  const tokens = new Map<string, Principal>();
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { port } = server.address() as AddressInfo;
    const { host, origin } = incoming.headers;
    const problem = findHostProblem(
      { target: incoming.url ?? "", host, origin },
      { port, bound: [], allowedHosts: [] },
    );
    if (problem !== null) return void outgoing.writeHead(403).end(problem);
    const token = incoming.headers.authorization?.slice("Bearer ".length);
    const who = token === undefined ? first : tokens.get(token);
    if (who === undefined) return void outgoing.writeHead(401).end();
    const gone = new AbortController();
    outgoing.on("close", () => gone.abort());
    const response = await mcp.handle(requestOf(incoming, gone.signal), who);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers)).flushHeaders();
    if (response.body === null) outgoing.end();
    else await pipeline(Readable.fromWeb(response.body as ReadableStream), outgoing);
  };
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closeLater(async () => {
    await mcp.close();
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  return { url, reported, as: (token, who) => void tokens.set(token, who) };
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = "GET", headers, url } = incoming;
  const init: RequestInit & { duplex?: "half" } = { method, headers: plain(headers), signal };
  if (method === "POST") {
    init.body = Readable.toWeb(incoming) as NonNullable<RequestInit["body"]>;
    init.duplex = "half";
  }
  return new Request(`http://${headers.host}${url}`, init);
}

function plain(headers: IncomingMessage["headers"]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
}
