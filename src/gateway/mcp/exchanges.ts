import type { McpHttpHandler, ServerEvent, ServerEventBus } from "@modelcontextprotocol/server";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { wireLimits } from "../../protocol/frames.ts";
import type { SessionTool } from "../../tools/contract.ts";
import type { McpAsker, McpParts, ReadMessage } from "./contract.ts";
import { Notices } from "./notices.ts";
import { mcpServer } from "./server.ts";

/** Beyond it the one that was silent longest is forgotten; what it has under way goes on. */
const mostAskers = 500;

/** Clients of the revision 2026-07-28, over HTTP: every request stands for itself, and notices come on `subscriptions/listen`. */
export class Exchanges {
  readonly #parts: McpParts;
  readonly #table: readonly SessionTool[];
  readonly #handlers = new Map<string, McpHttpHandler>();

  constructor(parts: McpParts, table: readonly SessionTool[]) {
    this.#parts = parts;
    this.#table = table;
  }

  handle({ request, ...body }: ReadMessage, asker: McpAsker): Promise<Response> {
    const { userId, sessionKey, scopes } = asker;
    const id = JSON.stringify([userId, sessionKey, scopes]);
    const handler = this.#handlers.get(id) ?? this.#handlerFor(asker);
    this.#handlers.delete(id);
    this.#handlers.set(id, handler);
    const [oldest] = this.#handlers.keys();
    if (this.#handlers.size > mostAskers && oldest !== undefined) this.#handlers.delete(oldest);
    return handler.fetch(request, body);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#handlers.values()].map((handler) => handler.close()));
  }

  /** One for each asker: what goes over its bus is for that asker alone. */
  #handlerFor(asker: McpAsker): McpHttpHandler {
    return createMcpHandler(() => mcpServer(this.#parts, this.#table, asker), {
      legacy: "reject",
      bus: new NoticeBus(this.#parts, asker),
      maxRequestBodySize: wireLimits.frameBytes,
      onerror: (error) => this.#parts.report(error),
    });
  }
}

/** Hears of changes for as long as anybody listens. */
class NoticeBus implements ServerEventBus {
  readonly #parts: McpParts;
  readonly #asker: McpAsker;
  readonly #listeners = new Set<(event: ServerEvent) => void>();
  #notices: Notices | null = null;

  constructor(parts: McpParts, asker: McpAsker) {
    this.#parts = parts;
    this.#asker = asker;
  }

  publish(event: ServerEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }

  subscribe(listener: (event: ServerEvent) => void): () => void {
    const entry = (event: ServerEvent) => listener(event);
    this.#listeners.add(entry);
    this.#notices ??= new Notices(this.#parts, this.#asker, {
      updated: (uris) => {
        for (const uri of uris) this.publish({ kind: "resource_updated", uri });
      },
      listChanged: () => this.publish({ kind: "resources_list_changed" }),
    });
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size > 0) return;
      this.#notices?.close();
      this.#notices = null;
    };
  }
}
