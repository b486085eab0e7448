import type { ServerContext } from "@modelcontextprotocol/server";
import { Server } from "@modelcontextprotocol/server";
import { present } from "../../core/present.ts";
import type { SessionTool } from "../../tools/contract.ts";
import { callTool, idempotencyMeta } from "./call-tool.ts";
import type { McpAsker, McpParts } from "./contract.ts";
import { checkResource, listResources, readResource, resourceTemplate } from "./resources.ts";
import { toolListing, toolsFor } from "./tool-listing.ts";

const instructions =
  "Sessions of AI agents that last: list and read them, send messages into them, and spawn new ones for a task. What you spawn belongs to you; which other sessions you see is for the configuration to say.";

/** URIs that somebody subscribed to on a connection. */
export type Subscribed = Set<string>;

/** One server for one asker. It answers what comes; notices of changes are sent by whoever holds the connection. */
export function mcpServer(
  parts: McpParts,
  table: readonly SessionTool[],
  asker: McpAsker,
  subscribed: Subscribed = new Set(),
): Server {
  const reads = asker.scopes.includes("read");
  const server = new Server(
    { name: "skein", title: "Skein", version: parts.version },
    {
      instructions,
      capabilities: { tools: {}, ...(reads ? { resources: { subscribe: true, listChanged: true } } : {}) },
    },
  );
  server.setRequestHandler("tools/list", async () => {
    const allowed = await parts.allowedTools(asker);
    const tools = toolsFor(table, asker.scopes).filter(({ name }) => allowed.has(name));
    return { tools: tools.map(toolListing) };
  });
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const { name, arguments: args } = params;
    const request = { name, args, ...howItIsCalled(parts, context) };
    const output = table.find((tool) => tool.name === name)?.output;
    return server.projectCallToolResult(
      await callTool(parts, table, asker, request),
      output && { ...output },
    );
  });
  if (reads) serveResources(server, parts, asker, subscribed);
  return server;
}

function serveResources(server: Server, parts: McpParts, asker: McpAsker, subscribed: Subscribed): void {
  server.setRequestHandler("resources/list", ({ params }, { mcpReq }) =>
    listResources(parts, asker, params?.cursor, mcpReq.signal),
  );
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: [resourceTemplate] }));
  server.setRequestHandler("resources/read", ({ params: { uri } }, { mcpReq }) =>
    readResource(parts, asker, uri, mcpReq.signal),
  );
  server.setRequestHandler("resources/subscribe", async ({ params: { uri } }, { mcpReq }) => {
    await checkResource(parts, asker, uri, mcpReq.signal);
    if (subscribed.size >= mostSubscribed) subscribed.delete(subscribed.values().next().value ?? "");
    subscribed.add(uri);
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    subscribed.delete(uri);
    return {};
  });
}

/** On one connection; beyond it the oldest is forgotten. */
const mostSubscribed = 10_000;

function howItIsCalled(parts: McpParts, { mcpReq }: ServerContext) {
  const { signal, _meta: meta } = mcpReq;
  const key = meta?.[idempotencyMeta];
  const progressToken = meta?.progressToken;
  const tell =
    progressToken === undefined
      ? undefined
      : (progress: number, message: string) => {
          const params = { progressToken, progress, message };
          mcpReq.notify({ method: "notifications/progress", params }).catch(parts.report);
        };
  return { signal, ...present({ idempotencyKey: typeof key === "string" ? key : undefined, tell }) };
}
