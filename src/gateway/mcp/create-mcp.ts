import { isLegacyRequest } from "@modelcontextprotocol/server";
import { SkeinError } from "../../core/errors.ts";
import { wireLimits } from "../../protocol/frames.ts";
import { sessionToolTable } from "../../tools/all.ts";
import type { Principal } from "../auth/principal.ts";
import { askerOf } from "./asker.ts";
import { Connections } from "./connections.ts";
import type { McpAsker, McpParts } from "./contract.ts";
import { Exchanges } from "./exchanges.ts";

/** MCP over Streamable HTTP, for whoever showed a token. */
export interface Mcp {
  /** One request at `/mcp`. `?agent=` names the agent that is spoken for. */
  handle(request: Request, principal: Principal): Promise<Response>;
  /** Ends every connection and stream. */
  close(): Promise<void>;
}

/** Of both revisions: up to 2025-11-25 with a handshake, 2026-07-28 without. */
export function createMcp(parts: McpParts): Mcp {
  const connections = new Connections(parts, sessionToolTable);
  const exchanges = new Exchanges(parts, sessionToolTable);
  return {
    handle: async (request, principal) => {
      const asker = askerIn(request, principal, parts);
      if (asker instanceof Response) return asker;
      const options = { maxRequestBodySize: wireLimits.frameBytes };
      const isOlder = await isLegacyRequest(request, undefined, options);
      return isOlder ? connections.handle(request, asker) : exchanges.handle(request, asker);
    },
    close: async () => {
      await Promise.all([connections.close(), exchanges.close()]);
    },
  };
}

function askerIn(request: Request, principal: Principal, { defaultAgentId }: McpParts): McpAsker | Response {
  try {
    return askerOf(principal, new URL(request.url).searchParams.get("agent") ?? defaultAgentId);
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    const { message } = error;
    return Response.json({ jsonrpc: "2.0", error: { code: -32602, message }, id: null }, { status: 400 });
  }
}
