// A real Skein behind MCP: over HTTP on loopback with the gateway's own checks of names, or anything that takes its parts.

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { openSkein } from "../../src/app.ts";
import { siteProblem } from "../../src/gateway/auth/allowed-hosts.ts";
import type { Principal } from "../../src/gateway/auth/principal.ts";
import { createMcp } from "../../src/gateway/mcp/create-mcp.ts";
import type { McpParts } from "../../src/gateway/mcp/mcp-context.ts";
import { skeinParts } from "../../src/gateway/mcp/mcp-context.ts";
import type { AgentSpec, Skein } from "../../src/index.ts";
import { defineAgent } from "../../src/index.ts";

export const revisions = ["2025-11-25", "2026-07-28"] as const;
export type Revision = (typeof revisions)[number];

export function principal(over: Partial<Principal> = {}): Principal {
  return { tokenId: "a1b2c3", name: "test", scopes: ["read", "write"], user: null, expiresAt: null, ...over };
}

export function partsOf(skein: Skein, reported: unknown[] = []): McpParts {
  return skeinParts(skein, {
    version: "1.2.3",
    defaultAgentId: "main",
    scope: "per-sender",
    isCurrent: () => true,
    report: (error) => reported.push(error),
  });
}

const closing: (() => Promise<unknown>)[] = [];

/** For afterEach. */
export async function closeAll(): Promise<void> {
  for (const close of closing.splice(0).reverse()) await close();
}

export async function rehearsedSkein(
  agent: Partial<AgentSpec> = {},
  { onDisk = false }: { readonly onDisk?: boolean } = {},
): Promise<Skein> {
  const skein = await openSkein({
    ...(onDisk ? { dir: newFolder() } : { memory: true }),
    config: null,
    env: {},
    agents: [defineAgent({ id: "main", model: "rehearsal/basic", ...agent }), defineAgent({ id: "other" })],
    quiet: true,
  });
  closing.push(() => skein.close({ graceMs: 0 }));
  return skein;
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "skein-mcp-"));
  closing.push(async () => rmSync(folder, { recursive: true, force: true }));
  return folder;
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
    const problem = siteProblem(
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
  closing.push(async () => {
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

export function newClient(revision: Revision): Client {
  const mode = revision === "2025-11-25" ? "legacy" : { pin: revision };
  return new Client({ name: "test", version: "0" }, { capabilities: {}, versionNegotiation: { mode } });
}

export async function connected(
  { url }: Pick<McpGateway, "url">,
  revision: Revision,
  { token, agent }: { readonly token?: string; readonly agent?: string } = {},
): Promise<Client> {
  const client = newClient(revision);
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const place = new URL(agent === undefined ? url : `${url}?agent=${agent}`);
  await client.connect(new StreamableHTTPClientTransport(place, { requestInit: { headers } }));
  closing.push(() => client.close());
  return client;
}

/** Notices as they come, each as one line. */
export function noticesOf(client: Client): string[] {
  const heard: string[] = [];
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
    heard.push(`updated ${params.uri}`);
  });
  client.setNotificationHandler("notifications/resources/list_changed", () => {
    heard.push("list changed");
  });
  return heard;
}

/** Subscribes to a resource and to the list, in the way of the revision. */
export async function subscribe(client: Client, revision: Revision, uri: string): Promise<void> {
  if (revision === "2025-11-25") await client.subscribeResource({ uri });
  else await client.listen({ resourceSubscriptions: [uri], resourcesListChanged: true });
}
