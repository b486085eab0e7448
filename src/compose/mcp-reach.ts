import { mcpToolPrefix } from "../agents/mcp/tool-name.ts";
import type { ToolReach } from "./tool-reach.ts";

/** A server as a source of tools is called, for people. */
export function mcpSourceName(server: string): string {
  return `the MCP server ${server}`;
}

/** What is known of a server's tools before it is asked. */
export function mcpReach(server: string): ToolReach {
  return { prefix: mcpToolPrefix(server), groups: ["group:mcp", `group:mcp:${server}`] };
}
