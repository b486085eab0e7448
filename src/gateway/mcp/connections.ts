import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { wireLimits } from "../../protocol/frames.ts";
import type { SessionTool } from "../../tools/contract.ts";
import type { McpAsker, McpParts, ReadMessage } from "./contract.ts";
import { Notices } from "./notices.ts";
import type { Subscribed } from "./server.ts";
import { mcpServer } from "./server.ts";

/** How many connections one token may hold, whichever agents it speaks for; beyond it the one that was silent longest goes. */
const mostPerToken = 32;

interface Connection {
  readonly asker: McpAsker;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  close(): Promise<void>;
}

/**
 * Clients of the revisions up to 2025-11-25, over HTTP: each begins with a handshake, gets a session id of MCP's own, and hears
 * notices on a stream that it holds open.
 */
export class Connections {
  readonly #parts: McpParts;
  readonly #table: readonly SessionTool[];
  /** The one that spoke last is the last. */
  readonly #open = new Map<string, Connection>();

  constructor(parts: McpParts, table: readonly SessionTool[]) {
    this.#parts = parts;
    this.#table = table;
  }

  async handle(message: ReadMessage, asker: McpAsker): Promise<Response> {
    const { request, ...body } = message;
    const id = request.headers.get("mcp-session-id");
    if (id === null) return this.#begin(message, asker);
    const known = this.#open.get(id);
    if (known === undefined || !isSame(known.asker, asker)) return noSuchConnection();
    this.#open.delete(id);
    this.#open.set(id, known);
    return known.transport.handleRequest(request, body);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((each) => each.close()));
  }

  /** What is no handshake is refused by the transport, and leaves nothing behind. */
  async #begin({ request, ...body }: ReadMessage, asker: McpAsker): Promise<Response> {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      maxRequestBodySize: wireLimits.frameBytes,
    });
    const subscribed: Subscribed = new Set();
    const server = mcpServer(this.#parts, this.#table, asker, subscribed);
    let notices: Notices | null = null;
    server.onclose = () => {
      notices?.close();
      this.#open.delete(transport.sessionId ?? "");
    };
    await server.connect(transport);
    const response = await transport.handleRequest(request, body);
    if (transport.sessionId === undefined) {
      await server.close();
      return response;
    }
    if (asker.scopes.includes("read")) notices = noticesTo(this.#parts, asker, server, subscribed);
    this.#open.set(transport.sessionId, { asker, transport, close: () => server.close() });
    await this.#makeRoom(asker);
    return response;
  }

  /** Those of tokens that have ended go too: nobody comes back to them. */
  async #makeRoom({ tokenId }: McpAsker): Promise<void> {
    const all = [...this.#open.values()];
    const own = all.filter(({ asker }) => asker.tokenId === tokenId);
    const surplus = own.slice(0, Math.max(0, own.length - mostPerToken));
    const tokens = new Set(all.map(({ asker }) => asker.tokenId));
    const over = new Set([...tokens].filter((each) => !this.#parts.isCurrent(each)));
    const left = all.filter(({ asker }) => over.has(asker.tokenId));
    await Promise.all([...new Set([...surplus, ...left])].map((each) => each.close()));
  }
}

/** Notices over a connection that lasts. `subscribed`: of these alone; `null`: whoever gets them chooses. */
export function noticesTo(
  parts: McpParts,
  asker: McpAsker,
  server: ReturnType<typeof mcpServer>,
  subscribed: Subscribed | null,
): Notices {
  const listener = {
    updated: (uris: readonly string[]) => {
      for (const uri of uris) server.sendResourceUpdated({ uri }).catch(parts.report);
    },
    listChanged: () => void server.sendResourceListChanged().catch(parts.report),
  };
  return new Notices(parts, asker, listener, (uri) => subscribed?.has(uri) ?? true);
}

/** A connection is for the token that began it, and nobody else learns that it is there. */
function isSame(one: McpAsker, other: McpAsker): boolean {
  return (
    one.sessionKey === other.sessionKey &&
    one.userId === other.userId &&
    one.scopes.join() === other.scopes.join()
  );
}

function noSuchConnection(): Response {
  const message = "Session not found: this connection is over, or another's. Begin anew with initialize.";
  return Response.json({ jsonrpc: "2.0", error: { code: -32001, message }, id: null }, { status: 404 });
}
