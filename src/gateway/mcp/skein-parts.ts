import type { SkeinEvent } from "../../core/events.ts";
import type { Skein } from "../../sessions/skein.ts";
import type { McpParts } from "./contract.ts";

/** What MCP stands on where the Skein is of this process. */
export function skeinParts(
  skein: Skein,
  known: Pick<McpParts, "version" | "defaultAgentId" | "scope" | "isCurrent" | "report">,
): McpParts {
  return {
    ...known,
    callTool: (name, args, { tokenId: _, ...call }) => skein.callTool(name, args, call),
    allowedTools: async ({ userId, agentId, sessionKey }) => {
      const tools = await skein.tools({ userId, agentId, sessionKey });
      return new Set(tools.map(({ name }) => name));
    },
    subscribe: ofUser((listener) => skein.subscribe(listener)),
  };
}

/** Of all that happens, what happens in the sessions of one user. */
export function ofUser(
  subscribe: (listener: (event: SkeinEvent) => void) => () => void,
): McpParts["subscribe"] {
  return (userId, listener) =>
    subscribe((event) => {
      if (event.userId === userId) listener(event);
    });
}
