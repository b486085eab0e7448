import type { Tool } from "@modelcontextprotocol/server";
import type { SessionTool } from "../../tools/contract.ts";
import { toldSchema } from "../../tools/told-schema.ts";
import type { TokenScope } from "../auth/principal.ts";

/** The session tools as MCP tells of them. Pure. */

/** What a token needs to call a tool. */
export function toolScope({ isReadOnly = false }: Pick<SessionTool, "isReadOnly">): TokenScope {
  return isReadOnly ? "read" : "write";
}

/** Those that a token with these scopes may call. */
export function toolsFor(
  table: readonly SessionTool[],
  scopes: readonly TokenScope[],
): readonly SessionTool[] {
  return table.filter((tool) => scopes.includes(toolScope(tool)));
}

export function toolListing(tool: SessionTool): Tool {
  const { name, label, description, parameters, output } = tool;
  const isReadOnly = tool.isReadOnly ?? false;
  return {
    name,
    title: label,
    description,
    inputSchema: { ...toldSchema(parameters), type: "object" },
    ...(output === undefined ? {} : { outputSchema: { ...output, type: "object" } }),
    annotations: {
      title: label,
      readOnlyHint: isReadOnly,
      destructiveHint: tool.isDestructive ?? false,
      idempotentHint: isReadOnly,
      // What is set off is done by agents, whose own tools may reach anywhere.
      openWorldHint: !isReadOnly,
    },
  };
}
