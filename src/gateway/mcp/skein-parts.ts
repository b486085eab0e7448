import type { Skein } from "../../sessions/skein/skein.ts";
import type { McpParts } from "./contract.ts";

/** What MCP stands on where the Skein is of this process. */
export function skeinParts(
  skein: Skein,
  known: Pick<McpParts, "version" | "defaultAgentId" | "scope" | "isCurrent" | "report">,
): McpParts {
  return {
    ...known,
    callTool: (name, args, call) => skein.callTool(name, args, call),
    subscribe: (userId, listener) =>
      skein.subscribe((event) => {
        if (event.userId === userId) listener(event);
      }),
  };
}
