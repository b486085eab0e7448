import type { Tool } from "../agents/contract.ts";
import type { McpServerConfig } from "../agents/mcp/connection.ts";
import type { McpTools } from "../agents/mcp/open-servers.ts";
import { mcpToolPrefix } from "../agents/mcp/open-servers.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/sections/all.ts";
import { present } from "../core/present.ts";
import type { McpServerPayload } from "../protocol/command-payloads.ts";
import type { ToolReach, ToolSource } from "../sessions/run-tools.ts";
import type { LookOptions } from "./acp.ts";
import { redactorOf } from "./redaction.ts";

/** Opens the configured MCP servers as tool sources. A server is not loaded or started until a run needs its tools. */
export function openMcp(
  { mcpServers }: Pick<Config, "mcpServers">,
  report: (error: unknown) => void,
): { readonly sources: readonly ToolSource[]; close(): Promise<void> } {
  const configs = Object.fromEntries(
    Object.entries(mcpServers).map(([name, server]) => [name, configOf(server)]),
  );
  let opened: Promise<McpTools> | null = null;
  const open = () => {
    opened ??= import("../agents/mcp/open-servers.ts").then(({ openMcpServers }) => openMcpServers(configs));
    return opened;
  };
  const lastListed = new Map<string, readonly Tool[]>();
  const sourceOf = (name: string): ToolSource => ({
    from: mcpSourceName(name),
    reach: mcpReach(name),
    lastListed: () => lastListed.get(name) ?? null,
    tools: async () => {
      const { tools, diagnostics } = await (await open()).tools([name]);
      lastListed.set(name, tools);
      for (const { note } of diagnostics) report(new Error(note));
      return tools;
    },
  });
  return {
    sources: Object.keys(configs).map(sourceOf),
    close: async () => {
      await (await opened)?.close();
    },
  };
}

/** Starts or connects to every configured MCP server and lists its tools. Secrets are masked in error messages. */
export async function checkMcpServers(
  loaded: Pick<LoadedConfig, "config" | "variable">,
  { env, onProgress }: Pick<LookOptions, "env" | "onProgress">,
): Promise<McpServerPayload[]> {
  const configs = Object.entries(loaded.config.mcpServers);
  if (configs.length === 0) return [];
  const { openMcpServers } = await import("../agents/mcp/open-servers.ts");
  const servers = await openMcpServers(
    Object.fromEntries(configs.map(([name, server]) => [name, configOf(server)])),
    { env },
  );
  const redactor = redactorOf(loaded);
  let done = 0;
  const check = async ([name]: (typeof configs)[number]): Promise<McpServerPayload> => {
    const { tools, diagnostics } = await servers.tools([name]);
    onProgress?.(++done, configs.length);
    const failure = diagnostics.find(({ code }) => code === "mcp_server_unavailable");
    if (failure === undefined) return { name, answers: true, tools: tools.length };
    return { name, answers: false, problem: redactor.redact(failure.why).text };
  };
  try {
    return await Promise.all(configs.map(check));
  } finally {
    await servers.close();
  }
}

function configOf(server: Config["mcpServers"][string]): McpServerConfig {
  const { command, args, env, cwd, url, headers, timeoutSeconds, approval } = server;
  const timeoutMs = timeoutSeconds * 1000;
  if (command !== null) return { command, args, env, ...present({ cwd }), timeoutMs, approval };
  return { url: url ?? "", headers, timeoutMs, approval };
}

/** Returns a server's name for display as a tool source. */
export function mcpSourceName(server: string): string {
  return `the MCP server ${server}`;
}

/** Returns what is known about a server's tools before the server is queried. */
export function mcpReach(server: string): ToolReach {
  return { prefix: mcpToolPrefix(server), groups: ["group:mcp", `group:mcp:${server}`] };
}
