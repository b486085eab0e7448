import { SkeinError } from "../../core/errors.ts";
import type { SharedEvents, SkeinEvent } from "../../core/events.ts";
import { formatKey } from "../../core/keys.ts";
import { readAgentId } from "../../core/names.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { ToolCalled } from "../../sessions/app.ts";
import type { Skein } from "../../sessions/skein.ts";
import type { Principal, TokenScope } from "../auth/principal.ts";
import { scopeFor } from "../auth/principal.ts";

/** The context of a tool call from an MCP client. */
export interface McpCall {
  readonly tokenId: string;
  readonly userId: string | null;
  /** `true` if the token has the `admin` scope. */
  readonly isOperator: boolean;
  /** The client's own session. */
  readonly sessionKey: string;
  readonly idempotencyKey?: string;
  readonly signal: AbortSignal;
  /** Called with the IDs of the runs that the call is waiting for. */
  onWait?(runIds: readonly string[]): void;
}

/** The backend for calls from MCP clients. This is either a Skein instance in this process or a running gateway. */
export interface McpBackend {
  readonly version: string;
  /** The agent for clients that do not name one. */
  readonly defaultAgentId: string;
  /** How short keys are resolved. */
  readonly scope: "per-sender" | "global";
  /** Returns the names of the session tools that a client can call. */
  allowedTools(asker: McpAsker): Promise<ReadonlySet<string>>;
  /** Calls a session tool as an agent in that session would. */
  callTool(name: string, args: unknown, call: McpCall): Promise<ToolCalled>;
  /**
   * Subscribes to events from one user's sessions. Calls `onLoss` when events might have been missed. Returns a function
   * that unsubscribes.
   */
  subscribe(userId: string | null, listener: (event: SkeinEvent) => void, onLoss?: () => void): () => void;
  /**
   * Returns the tokens that are no longer valid. Needed because a connection outlives the request that authenticated
   * it.
   */
  findEndedTokens(tokenIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Reports errors that cannot be returned to a client. */
  report(error: unknown): void;
}

/** The MCP client, as identified by its token. */
export interface McpAsker {
  readonly tokenId: string;
  readonly userId: string | null;
  readonly agentId: string;
  /** `agent:<agentId>:node:mcp-<tokenId>` */
  readonly sessionKey: string;
  readonly scopes: readonly TokenScope[];
}

/** A request with its parsed body. If the parsed body is absent, the body has not been read. */
export interface ReadMessage {
  readonly request: Request;
  readonly parsedBody?: unknown;
}

/** Returns the client identity for a token and an agent. Only the token determines the user. */
export function mcpAskerOf(principal: Principal, agent: string): McpAsker {
  const agentId = readAgentId(agent);
  if (agentId === null) {
    const problem = `"${escapeToLine(cutText(agent, 100))}" is not an agent ID`;
    throw new SkeinError("invalid_arguments", {
      problem,
      advice: "Omit it, or name a configured agent",
    });
  }
  const scope = scopeFor(principal);
  if (!scope.allowed) {
    const { problem, advice } = scope;
    throw new SkeinError("forbidden", { problem, advice });
  }
  const { tokenId, scopes } = principal;
  const sessionKey = formatKey({ form: "node", agentId, id: `mcp-${tokenId}` });
  return { tokenId, userId: scope.userId, agentId, sessionKey, scopes };
}

/** Returns the MCP backend for a Skein instance in this process. */
export function skeinMcpBackend(
  skein: Skein,
  known: Pick<McpBackend, "version" | "defaultAgentId" | "scope" | "findEndedTokens" | "report">,
): McpBackend {
  return {
    ...known,
    callTool: (name, args, { tokenId: _, ...call }) => skein.callTool(name, args, call),
    allowedTools: async ({ userId, agentId, sessionKey }) => {
      const tools = await skein.tools({ userId, agentId, sessionKey });
      return new Set(tools.map(({ name }) => name));
    },
    subscribe: subscribeForUser((listener) => skein.subscribe(listener)),
  };
}

/** Subscribes to the events of one user. */
export function subscribeForUser(subscribe: SharedEvents["subscribe"]): McpBackend["subscribe"] {
  return (userId, listener, onLoss) =>
    subscribe((event) => {
      if (event.userId === userId) listener(event);
    }, onLoss);
}
