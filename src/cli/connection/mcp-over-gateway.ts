import { present } from "../../core/present.ts";
import type { McpCall, McpParts } from "../../gateway/mcp/mcp-context.ts";
import type { WatchedCalls } from "../../protocol/methods/calls.ts";
import type { ToolCalled } from "../../sessions/skein.ts";
import { eventOf } from "./watch-run.ts";

/**
 * What MCP stands on where a gateway runs: every call is one of `tools.invoke`. Which run a call waits for is not told there,
 * so that no progress is.
 */
export function partsOver(
  calls: WatchedCalls,
  known: Pick<McpParts, "version" | "defaultAgentId" | "scope" | "isCurrent" | "report">,
): McpParts {
  return {
    ...known,
    callTool: (name, args, call) => invoke(calls, name, args, call),
    allowedTools: async ({ userId, agentId }) => {
      const agent = await findAgent(calls, userId, agentId).catch((error: unknown) => known.report(error));
      return new Set(agent?.configured === true ? agent.tools : await sessionToolNames());
    },
    subscribe: (userId, listener) => {
      const stream = calls.events(present({ userId }));
      const hear = async () => {
        for await (const received of stream) {
          const event = eventOf(received, userId);
          if (event !== null) listener(event);
        }
      };
      hear().catch(known.report);
      return () => stream.close();
    },
  };
}

async function findAgent(calls: WatchedCalls, userId: string | null, agentId: string) {
  const { agents } = await calls.call("agents.list", present({ userId }));
  return agents.find(({ id }) => id === agentId);
}

async function sessionToolNames(): Promise<readonly string[]> {
  const { sessionToolTable } = await import("../../tools/all.ts");
  return sessionToolTable.map(({ name }) => name);
}

async function invoke(
  calls: WatchedCalls,
  name: string,
  args: unknown,
  { sessionKey, userId, idempotencyKey, signal }: McpCall,
): Promise<ToolCalled> {
  const params = {
    sessionKey,
    name,
    arguments: args as Record<string, unknown>,
    ...present({ userId, idempotencyKey }),
  };
  try {
    const { result, rootId = null } = await calls.call("tools.invoke", params, { signal });
    return { result: result as ToolCalled["result"], rootId };
  } catch (error) {
    signal.throwIfAborted();
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
    if (typeof code !== "string") throw error;
    const status = code === "forbidden" || code === "unauthorized" ? "forbidden" : "error";
    return { result: { status, code, error: String(message) }, rootId: null };
  }
}
