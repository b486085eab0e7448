import type { Tool as McpTool } from "@modelcontextprotocol/client";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { shortHash } from "../../core/short-hash.ts";
import { thrownText } from "../../core/text.ts";
import type { Tool } from "../contract.ts";
import type { McpServerConfig } from "./connection.ts";
import { checkMcpConfig } from "./connection.ts";
import { McpServer } from "./server.ts";

/** A problem with a server that does not stop a run. */
export interface McpDiagnostic {
  readonly code: "mcp_server_unavailable" | "mcp_tool_left_out";
  readonly server: string;
  /** The reason, without the server's name. */
  readonly why: string;
  readonly note: string;
}

export interface McpOptions {
  readonly clock?: Clock;
  /** The environment from which child processes inherit PATH, HOME and LANG. Defaults to our own. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The maximum time a server has to list its tools. Defaults to 10,000. */
  readonly startTimeoutMs?: number;
}

/** The tools from all configured MCP servers. */
export interface McpTools {
  /**
   * Starts servers that are not running. Never throws. A server that fails is omitted, and a diagnostic is reported.
   */
  tools(
    servers?: readonly string[],
  ): Promise<{ readonly tools: readonly Tool[]; readonly diagnostics: readonly McpDiagnostic[] }>;
  /** Resolves when every child process has exited. */
  close(): Promise<void>;
}

/** Opens the configured servers lazily. Nothing is started or loaded until tools are requested. */
export async function openMcpServers(
  config: Readonly<Record<string, McpServerConfig>>,
  { clock = systemClock, env = process.env, startTimeoutMs = 10_000 }: McpOptions = {},
): Promise<McpTools> {
  checkMcpConfig(config);
  const servers = new Map(
    Object.entries(config).map(([name, each]) => [name, new McpServer(each, { clock, env, startTimeoutMs })]),
  );
  return {
    tools: async (names = [...servers.keys()]) => {
      const found = await Promise.all([...new Set(names)].map((name) => toolsOf(name, servers.get(name))));
      return {
        tools: found.flatMap(({ tools }) => tools),
        diagnostics: found.flatMap(({ diagnostics }) => diagnostics),
      };
    },
    close: async () => {
      await Promise.all([...servers.values()].map((server) => server.close()));
    },
  };
}

interface ServerTools {
  readonly tools: readonly Tool[];
  readonly diagnostics: readonly McpDiagnostic[];
}

async function toolsOf(name: string, server: McpServer | undefined): Promise<ServerTools> {
  const unavailable = (why: string): ServerTools => {
    const note = `MCP server "${name}" was skipped: ${why}.`;
    return { tools: [], diagnostics: [{ code: "mcp_server_unavailable", server: name, why, note }] };
  };
  if (server === undefined) return unavailable("it is not in the configuration");
  try {
    return nameTools(name, server, await server.tools());
  } catch (error) {
    return unavailable(thrownText(error));
  }
}

/** Names the tools, omitting a second tool with the same name. */
function nameTools(server: string, through: McpServer, offered: readonly McpTool[]): ServerTools {
  const tools = new Map<string, Tool>();
  const diagnostics: McpDiagnostic[] = [];
  for (const tool of offered) {
    const name = mcpToolName(server, tool.name);
    if (!tools.has(name)) tools.set(name, toolOf(name, server, through, tool));
    else
      diagnostics.push({
        code: "mcp_tool_left_out",
        server,
        why: `it offers a second tool named "${tool.name}"`,
        note: `MCP server "${server}" offers a second tool named "${tool.name}", which was skipped.`,
      });
  }
  return { tools: [...tools.values()], diagnostics };
}

function toolOf(name: string, server: string, through: McpServer, tool: McpTool): Tool {
  const { $schema: _, ...inputSchema } = tool.inputSchema as Readonly<Record<string, unknown>>;
  return {
    name,
    description: tool.description?.trim() || tool.title || tool.annotations?.title || tool.name,
    inputSchema: { ...inputSchema, type: "object", properties: inputSchema.properties ?? {} },
    replay: tool.annotations?.readOnlyHint === true ? "safe" : "never",
    groups: ["group:mcp", `group:mcp:${server}`],
    needsApproval: () => through.needsApproval,
    // The server checks the arguments itself.
    check: async (args) => ({ args }),
    execute: (args, { signal }) => through.call(tool.name, args as Readonly<Record<string, unknown>>, signal),
  };
}

const maxLength = 64;
const hashLength = 8;
const otherCharacters = /[^A-Za-z0-9_-]/g;

/**
 * Returns a server tool's name for a model: `<server>__<tool>`, at most 64 characters. If that name would be ambiguous,
 * too long or contain other characters, a hash of the server and tool names is appended. The name depends on nothing
 * else, so it stays the same regardless of which servers are running.
 */
export function mcpToolName(server: string, tool: string): string {
  const whole = `${server}__${tool}`;
  const clean = whole.replace(otherCharacters, "_");
  const isExact = clean === whole && !server.includes("__") && !server.endsWith("_");
  if (isExact && clean.length <= maxLength) return clean;
  const hash = shortHash(`${server.length} ${server} ${tool}`).slice(0, hashLength);
  return `${clean.slice(0, maxLength - hashLength - 1)}_${hash}`;
}

/** Returns the common prefix of a server's tool names, without the part that a hash might replace. */
export function mcpToolPrefix(server: string): string {
  return `${server}__`.replace(otherCharacters, "_").slice(0, maxLength - hashLength - 1);
}
