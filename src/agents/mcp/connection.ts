import type { CallToolResult, Client, Tool as McpTool, Transport } from "@modelcontextprotocol/client";
import { within } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import { clientInfo } from "../../core/names.ts";
import type { ProcessSpec } from "../process/start-process.ts";
import { ChildTransport } from "./child-transport.ts";

export interface ConnectionOptions {
  /** Cancels a pending start. */
  readonly closing: AbortSignal;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly startTimeoutMs: number;
}

/** An open connection to a server. A closed connection cannot be reopened. */
export interface Connection {
  /** Returns the server's tools, listing them again if the server has reported a change. */
  tools(signal?: AbortSignal): Promise<readonly McpTool[]>;
  call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: { readonly signal: AbortSignal; readonly timeoutMs: number },
  ): Promise<CallToolResult>;
  /** Resolves when the process has exited. */
  close(): Promise<void>;
  /** Returns how the server's process exited and the end of its stderr. Empty for an HTTP server. */
  report(): string;
  /** Calls `listener` once, when either side closes the connection. */
  onEnd(listener: () => void): void;
}

const maxPages = 1000;
const terminateMs = 1000;

/**
 * Connects to a server and lists its tools, all within the start timeout. If this fails, the connection is passed to
 * the `failed` callback, which closes it in the background.
 */
export async function connect(
  config: McpServerConfig,
  { env, startTimeoutMs, closing }: ConnectionOptions,
  failed: (connection: Connection) => void,
): Promise<Connection> {
  const sdk = await import("@modelcontextprotocol/client");
  // No capabilities are declared, so the protocol rejects server requests for sampling, elicitation or roots.
  const client = new sdk.Client(clientInfo, { capabilities: {} });
  const transport: Transport =
    "command" in config
      ? new ChildTransport(processSpec(config), { env, parse: sdk.parseJSONRPCMessage })
      : new sdk.StreamableHTTPClientTransport(new URL(config.url), {
          requestInit: { headers: { ...config.headers } },
        });
  const connection = connectionOver(client, transport, startTimeoutMs);
  try {
    const signal = AbortSignal.any([AbortSignal.timeout(startTimeoutMs), closing]);
    await client.connect(transport, { signal, timeout: startTimeoutMs });
    await connection.tools(signal);
    return connection;
  } catch (error) {
    failed(connection);
    throw error;
  }
}

function connectionOver(client: Client, transport: Transport, startTimeoutMs: number): Connection {
  let listing: Promise<readonly McpTool[]> | null = null;
  const ends: (() => void)[] = [];
  client.onclose = () => {
    for (const end of ends.splice(0)) end();
  };
  client.setNotificationHandler("notifications/tools/list_changed", () => {
    listing = null;
  });
  return {
    tools: (signal = AbortSignal.timeout(startTimeoutMs)) => {
      listing ??= listTools(client, signal);
      return listing;
    },
    call: (name, args, { signal, timeoutMs }) =>
      client.request(
        { method: "tools/call", params: { name, arguments: args } },
        { signal, timeout: timeoutMs },
      ) as Promise<CallToolResult>,
    close: async () => {
      await terminateSession(transport);
      // Closes the transport too, unless the client never started.
      await client.close();
      await transport.close();
    },
    report: () => (transport instanceof ChildTransport ? transport.report : ""),
    onEnd: (listener) => ends.push(listener),
  };
}

function processSpec({ command, args = [], env = {}, cwd = process.cwd() }: McpCommand): ProcessSpec {
  return { command, args, env, cwd };
}

/** Ends the session on an HTTP server, without waiting long if the server does not respond. */
async function terminateSession(transport: Transport): Promise<void> {
  if (!("terminateSession" in transport)) return;
  const http = transport as Transport & { terminateSession(): Promise<void> };
  await within(
    terminateMs,
    http.terminateSession().catch(() => undefined),
  );
}

/** Lists the tools from all pages. A repeated cursor is an error, because the listing would never end. */
async function listTools(client: Client, signal: AbortSignal): Promise<readonly McpTool[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const tools: McpTool[] = [];
  const cursors = new Set<string>();
  for (let page = 0, cursor: string | undefined; page < maxPages; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await client.request({ method: "tools/list", params }, { signal });
    tools.push(...answer.tools);
    cursor = answer.nextCursor;
    if (cursor === undefined) return tools;
    if (cursors.has(cursor)) throw new Error("its tool list is cyclic");
    cursors.add(cursor);
  }
  throw new Error(`its tool list has more than ${maxPages} pages`);
}

/** A server that runs as a child process and communicates over stdin and stdout. */
export interface McpCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to PATH, HOME and LANG. No other variable from our environment is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The maximum duration of a call, in milliseconds. Defaults to 60,000. */
  readonly timeoutMs?: number;
  /** Whether every call to the server's tools needs approval. Defaults to `false`. */
  readonly approval?: boolean;
}

/** A server over Streamable HTTP. */
interface McpAddress {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly approval?: boolean;
}

export type McpServerConfig = McpCommand | McpAddress;

/** Throws `invalid_arguments` for a server configuration that cannot work. Starts nothing. */
export function checkMcpConfig(servers: Readonly<Record<string, McpServerConfig>>): void {
  for (const [name, server] of Object.entries(servers)) {
    const problem = problemOf(name, server);
    if (problem === null) continue;
    const advice = "Set a command, or a url that starts with http:// or https://";
    throw new SkeinError("invalid_arguments", { problem: `MCP server "${name}" ${problem}`, advice });
  }
}

function problemOf(name: string, server: McpServerConfig): string | null {
  if (name.trim() === "") return "has no name";
  if ("command" in server && "url" in server) return "has both a command and a url";
  const { timeoutMs } = server;
  if (timeoutMs !== undefined && !(Number.isFinite(timeoutMs) && timeoutMs > 0))
    return "has an invalid timeoutMs";
  if ("command" in server) return server.command === "" ? "has an empty command" : null;
  return /^https?:$/.test(URL.parse(server.url)?.protocol ?? "") ? null : "has neither a command nor a url";
}
