import type { CallToolResult, Client, Tool as McpTool, Transport } from "@modelcontextprotocol/client";
import { ourselves } from "../../core/ourselves.ts";
import { ChildTransport } from "./child-transport.ts";
import type { McpServerConfig } from "./config.ts";

export interface ConnectionOptions {
  /** Ends a start that is under way. */
  readonly closing: AbortSignal;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly startTimeoutMs: number;
}

/** One open line to a server. Once it is closed it stays so; whoever wants the server again opens another. */
export interface Connection {
  /** Its tools; asked for again when the server said that they have changed. */
  tools(signal?: AbortSignal): Promise<readonly McpTool[]>;
  call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: { readonly signal: AbortSignal; readonly timeoutMs: number },
  ): Promise<CallToolResult>;
  /** Resolves when the process is gone. */
  close(): Promise<void>;
  /** What the server's process said of itself. */
  account(): string;
  /** Once, when the line is closed, by whomever. */
  onEnd(listener: () => void): void;
}

const mostPages = 1000;
const farewellMs = 1000;

/**
 * Starts or calls a server and asks for its tools, all within the start timeout. A connection that fails is returned to
 * `failed`, to be closed: the run does not wait for that.
 */
export async function connect(
  config: McpServerConfig,
  { env, startTimeoutMs, closing }: ConnectionOptions,
  failed: (connection: Connection) => void,
): Promise<Connection> {
  const sdk = await import("@modelcontextprotocol/client");
  // No capabilities: a server that asks for sampling, elicitation or roots is refused by the protocol.
  const client = new sdk.Client(ourselves, { capabilities: {} });
  const transport: Transport =
    "command" in config
      ? new ChildTransport(config, { env, parse: sdk.parseJSONRPCMessage })
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
      await farewell(transport);
      // Closing the client closes its transport; one that never started knows none.
      await client.close();
      await transport.close();
    },
    account: () => (transport instanceof ChildTransport ? transport.account : ""),
    onEnd: (listener) => ends.push(listener),
  };
}

/** A server over HTTP may let go of the session; one that does not answer is not waited for. */
async function farewell(transport: Transport): Promise<void> {
  if (!("terminateSession" in transport)) return;
  const { terminateSession } = transport as { terminateSession(): Promise<void> };
  const said = terminateSession.call(transport).catch(() => undefined);
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, farewellMs);
  await Promise.race([said, late.promise]);
  clearTimeout(timer);
}

/** All pages within the time of one start; a cursor that comes again would be asked for for ever. */
async function listTools(client: Client, signal: AbortSignal): Promise<readonly McpTool[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const tools: McpTool[] = [];
  const cursors = new Set<string>();
  for (let page = 0, cursor: string | undefined; page < mostPages; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await client.request({ method: "tools/list", params }, { signal });
    tools.push(...answer.tools);
    cursor = answer.nextCursor;
    if (cursor === undefined) return tools;
    if (cursors.has(cursor)) throw new Error("its list of tools goes round in a circle");
    cursors.add(cursor);
  }
  throw new Error(`its list of tools has more than ${mostPages} pages`);
}
