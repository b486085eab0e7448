import type { Config } from "../config/sections/all.ts";
import { present } from "../core/present.ts";
import type { McpServerConfig } from "../runtimes/mcp/config.ts";
import type { McpTools } from "../runtimes/mcp/open-servers.ts";
import type { ToolSource } from "./run-tools.ts";

/** The MCP servers of the configuration; nothing is loaded or started until a run asks for tools. */
export async function openMcp(
  { mcpServers }: Pick<Config, "mcpServers">,
  report: (error: unknown) => void,
): Promise<{ readonly source: ToolSource; close(): Promise<void> }> {
  const configs = Object.fromEntries(
    Object.entries(mcpServers).map(([name, server]) => [name, configOf(server)]),
  );
  const isNone = Object.keys(configs).length === 0;
  let opened: Promise<McpTools> | null = null;
  const open = () => {
    opened ??= import("../runtimes/mcp/open-servers.ts").then(({ openMcpServers }) =>
      openMcpServers(configs),
    );
    return opened;
  };
  return {
    source: {
      from: "the MCP servers",
      tools: async () => {
        if (isNone) return [];
        const { tools, diagnostics } = await (await open()).tools();
        for (const { note } of diagnostics) report(new Error(note));
        return tools;
      },
    },
    close: async () => {
      await (await opened)?.close();
    },
  };
}

function configOf(server: Config["mcpServers"][string]): McpServerConfig {
  const { command, args, env, cwd, url, headers, timeoutSeconds } = server;
  const timeoutMs = timeoutSeconds * 1000;
  if (command !== null) return { command, args, env, ...present({ cwd }), timeoutMs };
  return { url: url ?? "", headers, timeoutMs };
}
