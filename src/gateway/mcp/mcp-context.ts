import { SkeinError } from "../../core/errors.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { formatKey } from "../../core/keys.ts";
import { readAgentId } from "../../core/names.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { ToolCalled } from "../../sessions/app.ts";
import type { Skein } from "../../sessions/skein.ts";
import type { Principal, TokenScope } from "../auth/principal.ts";
import { scopeFor } from "../auth/principal.ts";

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
export interface McpApp {
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

/** Who asks, by the token and the agent that is spoken for. Nobody but the token says whose sessions these are. */
export function mcpAskerOf(principal: Principal, agent: string): McpAsker {
  const agentId = readAgentId(agent);
  if (agentId === null) {
    const problem = `"${escapeToLine(cutText(agent, 100))}" is no id of an agent`;
    throw new SkeinError("invalid_arguments", {
      problem,
      advice: "Leave it out, or name a configured agent",
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

/** What MCP stands on where the Skein is of this process. */
export function skeinMcpApp(
  skein: Skein,
  known: Pick<McpApp, "version" | "defaultAgentId" | "scope" | "isCurrent" | "report">,
): McpApp {
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

/** Of all that happens, what happens in the sessions of one user. */
export function subscribeForUser(
  subscribe: (listener: (event: SkeinEvent) => void) => () => void,
): McpApp["subscribe"] {
  return (userId, listener) =>
    subscribe((event) => {
      if (event.userId === userId) listener(event);
    });
}
