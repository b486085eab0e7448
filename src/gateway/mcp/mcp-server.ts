import type {
  ListResourcesResult,
  ReadResourceResult,
  Resource,
  ServerContext,
} from "@modelcontextprotocol/server";
import {
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
} from "@modelcontextprotocol/server";
import { stringifyJson } from "../../core/json.ts";
import { present } from "../../core/present.ts";
import { displayKey, keyOfReference } from "../../core/references.ts";
import type { SessionTool, ToolResult } from "../../tools/session-tool.ts";
import { isRefusal } from "../../tools/session-tool.ts";
import { callTool, idempotencyMeta, resultOf, toolListing, toolsFor } from "./call-tool.ts";
import type { McpAsker, McpBackend } from "./mcp-context.ts";

const instructions =
  "Durable sessions for AI agents: list and read them, send messages to them, and spawn new ones for a task. Sessions that you spawn belong to you. The configuration determines which other sessions you can see.";

/** The URIs that a connection has subscribed to. */
export type SubscribedUris = Set<string>;

/** Creates the MCP server for one client. The owner of the connection sends the notifications. */
export function mcpServer(
  app: McpBackend,
  table: readonly SessionTool[],
  asker: McpAsker,
  subscribed: SubscribedUris = new Set(),
): Server {
  const reads = asker.scopes.includes("read");
  const server = new Server(
    { name: "skein", title: "Skein", version: app.version },
    {
      instructions,
      capabilities: { tools: {}, ...(reads ? { resources: { subscribe: true, listChanged: true } } : {}) },
    },
  );
  server.setRequestHandler("tools/list", async () => {
    const allowed = await app.allowedTools(asker);
    const tools = toolsFor(table, asker.scopes).filter(({ name }) => allowed.has(name));
    return { tools: tools.map(toolListing) };
  });
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const { name, arguments: args } = params;
    const request = { name, args, ...callOptions(app, context) };
    const output = table.find((tool) => tool.name === name)?.output;
    return server.projectCallToolResult(await callTool(app, table, asker, request), output && { ...output });
  });
  if (reads) serveResources(server, app, asker, subscribed);
  return server;
}

function serveResources(server: Server, app: McpBackend, asker: McpAsker, subscribed: SubscribedUris): void {
  server.setRequestHandler("resources/list", ({ params }, { mcpReq }) =>
    listResources(app, asker, params?.cursor, mcpReq.signal),
  );
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: [resourceTemplate] }));
  server.setRequestHandler("resources/read", ({ params: { uri } }, { mcpReq }) =>
    readResource(app, asker, uri, mcpReq.signal),
  );
  server.setRequestHandler("resources/subscribe", async ({ params: { uri } }, { mcpReq }) => {
    await checkResource(app, asker, uri, mcpReq.signal);
    if (subscribed.size >= mostSubscribed) subscribed.delete(subscribed.values().next().value ?? "");
    subscribed.add(uri);
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    subscribed.delete(uri);
    return {};
  });
}

/** The maximum number of subscriptions per connection. If there are more, the oldest is dropped. */
const mostSubscribed = 10_000;

function callOptions(app: McpBackend, { mcpReq }: ServerContext) {
  const { signal, _meta: meta } = mcpReq;
  const key = meta?.[idempotencyMeta];
  const progressToken = meta?.progressToken;
  const tell =
    progressToken === undefined
      ? undefined
      : (progress: number, message: string) => {
          const params = { progressToken, progress, message };
          mcpReq.notify({ method: "notifications/progress", params }).catch(app.report);
        };
  return { signal, ...present({ idempotencyKey: typeof key === "string" ? key : undefined, tell }) };
}

/**
 * Exposes sessions as resources. A resource contains exactly what `sessions_list` or `sessions_history` shows this
 * client. A URI contains the key as the client would write it. Full keys, session IDs and labels are also accepted.
 */

const base = "skein://sessions/";
const mimeType = "application/json";
const pageSize = 100;
const messagesRead = 1000;

export const resourceTemplate = {
  uriTemplate: `${base}{key}`,
  name: "session",
  title: "A session",
  description:
    "The newest messages in a session, as sessions_history returns them. The key is the one that sessions_list shows, percent-encoded.",
  mimeType,
} as const;

export function uriOf(reference: string): string {
  return base + encodeURIComponent(reference);
}

/** Returns the session reference in a URI, or `null` if the URI does not refer to a session. */
export function referenceIn(uri: string): string | null {
  if (!uri.startsWith(base)) return null;
  try {
    const reference = decodeURIComponent(uri.slice(base.length));
    return reference === "" ? null : reference;
  } catch {
    return null; // Not valid percent-encoding, so it refers to no session.
  }
}

/** Returns every URI that a client could use for a session. */
export function urisOf(
  { scope }: Pick<McpBackend, "scope">,
  { agentId, sessionKey }: McpAsker,
  session: { readonly sessionKey: string; readonly sessionId: string },
): readonly string[] {
  const display = displayKey(session.sessionKey, { agentId, key: sessionKey, scope });
  return [...new Set([display, session.sessionKey, session.sessionId])].map(uriOf);
}

/** Like `urisOf`, but for a row of `sessions_list`, which names a session by the short form of its key. */
export function urisOfRow(
  { scope }: Pick<McpBackend, "scope">,
  { agentId, sessionKey }: McpAsker,
  { key, sessionId }: { readonly key: string; readonly sessionId: string },
): readonly string[] {
  const whole = keyOfReference(key, { agentId, key: sessionKey, scope }) ?? key;
  return [...new Set([key, whole, sessionId])].map(uriOf);
}

export async function listResources(
  app: McpBackend,
  asker: McpAsker,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<ListResourcesResult> {
  const args = { limit: pageSize, ...present({ cursor }) };
  const result = await resultOf(app, asker, { name: "sessions_list", args, signal });
  if (isRefusal(result)) throw invalid(result);
  const { sessions, nextCursor } = result as { sessions: readonly Row[]; nextCursor?: string };
  return { resources: sessions.map(resourceOf), ...present({ nextCursor }) };
}

/** The fields of a `sessions_list` row that are used here. */
interface Row {
  readonly key: string;
  readonly kind: string;
  readonly label?: string;
  readonly displayName?: string;
  readonly updatedAt: number;
}

function resourceOf({ key, kind, label, displayName, updatedAt }: Row): Resource {
  return {
    uri: uriOf(key),
    name: key,
    ...present({ title: label ?? displayName }),
    description: `A session (${kind}).`,
    mimeType,
    annotations: { lastModified: new Date(updatedAt).toISOString() },
  };
}

export async function readResource(
  app: McpBackend,
  asker: McpAsker,
  uri: string,
  signal: AbortSignal,
): Promise<ReadResourceResult> {
  const result = await historyOf(app, asker, uri, { limit: messagesRead, signal });
  return { contents: [{ uri, mimeType, text: stringifyJson(result) }] };
}

/** Throws the same errors as reading the resource, but reads only one message. */
export async function checkResource(
  app: McpBackend,
  asker: McpAsker,
  uri: string,
  signal: AbortSignal,
): Promise<void> {
  await historyOf(app, asker, uri, { limit: 1, signal });
}

async function historyOf(
  app: McpBackend,
  asker: McpAsker,
  uri: string,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): Promise<ToolResult> {
  const reference = referenceIn(uri);
  if (reference === null) {
    throw new ResourceNotFoundError(uri, `No such resource. Resource URIs have the format ${base}{key}.`);
  }
  const args = { sessionKey: reference, limit };
  const result = await resultOf(app, asker, { name: "sessions_history", args, signal });
  if (!isRefusal(result)) return result;
  if (result.code === "not_found") throw new ResourceNotFoundError(uri, String(result.error));
  throw invalid(result, uri);
}

function invalid({ code, error }: ToolResult, uri?: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, String(error), { code, ...present({ uri }) });
}
