import { isJsonContentType, isLegacyRequest, readRequestBody } from "@modelcontextprotocol/server";
import { SkeinError } from "../../core/errors.ts";
import { parseJson } from "../../core/parse-json.ts";
import { wireLimits } from "../../protocol/frames.ts";
import { sessionToolTable } from "../../tools/all.ts";
import type { Principal } from "../auth/principal.ts";
import { askerOf } from "./asker.ts";
import { Connections } from "./connections.ts";
import type { McpAsker, McpParts, ReadMessage } from "./contract.ts";
import { Exchanges } from "./exchanges.ts";

/** MCP over Streamable HTTP, for whoever showed a token. */
export interface Mcp {
  /** One request at `/mcp`. `?agent=` names the agent that is spoken for. */
  handle(request: Request, principal: Principal): Promise<Response>;
  /** Ends every connection and stream. */
  close(): Promise<void>;
}

const maxBody = { maxRequestBodySize: wireLimits.frameBytes };

/**
 * Parses the body of a request in slices. What is not JSON or cannot be read is replaced by a short text that is not JSON either,
 * and a body that is too large by its declared length, so that the SDK answers as it does without this.
 */
async function readMessage(request: Request): Promise<ReadMessage> {
  if (request.method !== "POST" || !isJsonContentType(request.headers.get("content-type")))
    return { request };
  try {
    const read = await readRequestBody(request, wireLimits.frameBytes);
    if (read.tooLarge) {
      const headers = {
        ...Object.fromEntries(request.headers),
        "content-length": `${wireLimits.frameBytes + 1}`,
      };
      return { request: new Request(request, { headers, body: "{" }) };
    }
    return { request, parsedBody: await parseJson(read.text, request.signal) };
  } catch {
    return { request: new Request(request, { body: "{" }) };
  }
}

/** Of both revisions: up to 2025-11-25 with a handshake, 2026-07-28 without. */
export function createMcp(parts: McpParts): Mcp {
  const connections = new Connections(parts, sessionToolTable);
  const exchanges = new Exchanges(parts, sessionToolTable);
  return {
    handle: async (request, principal) => {
      const asker = askerIn(request, principal, parts);
      if (asker instanceof Response) return asker;
      const read = await readMessage(request);
      const isOlder = await isLegacyRequest(read.request, read.parsedBody, maxBody);
      return isOlder ? connections.handle(read, asker) : exchanges.handle(read, asker);
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
