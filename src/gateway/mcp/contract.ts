import type { SkeinEvent } from "../../core/events.ts";
import type { ToolCalled } from "../../sessions/skein.ts";
import type { TokenScope } from "../auth/principal.ts";

/** How a tool is called for somebody who speaks MCP. */
export interface McpCall {
  readonly tokenId: string;
  readonly userId: string | null;
  /** Its token has the scope `admin`. */
  readonly isOperator: boolean;
  /** The asker's own session. */
  readonly sessionKey: string;
  readonly idempotencyKey?: string;
  readonly signal: AbortSignal;
  /** Told of the runs that the call begins to wait for. */
  onWait?(runIds: readonly string[]): void;
}

/** What MCP stands on. */
export interface McpParts {
  readonly version: string;
  /** Of the asker, where nobody names another. */
  readonly defaultAgentId: string;
  /** How short keys are read. */
  readonly scope: "per-sender" | "global";
  /** The names of the session tools that an asker may call. */
  allowedTools(asker: McpAsker): Promise<ReadonlySet<string>>;
  /** A session tool, exactly as an agent in that session would call it. */
  callTool(name: string, args: unknown, call: McpCall): Promise<ToolCalled>;
  /** What happens in the sessions of one user. Returns a function that ends it. */
  subscribe(userId: string | null, listener: (event: SkeinEvent) => void): () => void;
  /** Whether a token is still good: connections outlast the moment in which it was shown. */
  isCurrent(tokenId: string): boolean;
  /** Told of what nobody asked for and went wrong. */
  report(error: unknown): void;
}

/** On whose behalf somebody speaks MCP: fixed by the token, whatever is called. */
export interface McpAsker {
  readonly tokenId: string;
  readonly userId: string | null;
  readonly agentId: string;
  /** `agent:<agentId>:node:mcp-<tokenId>` */
  readonly sessionKey: string;
  readonly scopes: readonly TokenScope[];
}

/** A request with its parsed body; without one, the body has not been read. */
export interface ReadMessage {
  readonly request: Request;
  readonly parsedBody?: unknown;
}
