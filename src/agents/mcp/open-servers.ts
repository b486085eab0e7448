import type { Tool as McpTool } from "@modelcontextprotocol/client";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { shortHash } from "../../core/short-hash.ts";
import { thrownText } from "../../core/text.ts";
import type { Tool } from "../contract.ts";
import type { McpServerConfig } from "./config.ts";
import { checkMcpConfig } from "./config.ts";
import { McpServer } from "./server.ts";

/** Something about a server that a run goes on without. */
export interface McpDiagnostic {
  readonly code: "mcp_server_unavailable" | "mcp_tool_left_out";
  readonly server: string;
  /** The reason alone. */
  readonly why: string;
  readonly note: string;
}

export interface McpDeps {
  readonly clock?: Clock;
  /** Where PATH, HOME and LANG of child processes come from; by default our own environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** How long a server may take until it has told its tools; by default 10,000. */
  readonly startTimeoutMs?: number;
}

/** The tools of all MCP servers of a configuration. */
export interface McpTools {
  /** Starts what is not running. Never throws: a server that fails is missing, and a diagnostic says why. */
  tools(
    servers?: readonly string[],
  ): Promise<{ readonly tools: readonly Tool[]; readonly diagnostics: readonly McpDiagnostic[] }>;
  /** Resolves when every child process is gone. */
  close(): Promise<void>;
}

/** Nothing is started or loaded until the tools are asked for. */
export async function openMcpServers(
  config: Readonly<Record<string, McpServerConfig>>,
  { clock = systemClock, env = process.env, startTimeoutMs = 10_000 }: McpDeps = {},
): Promise<McpTools> {
  checkMcpConfig(config);
  const servers = new Map(
    Object.entries(config).map(([name, each]) => [name, new McpServer(each, { clock, env, startTimeoutMs })]),
  );
  return {
    tools: async (names = [...servers.keys()]) => {
      const parts = await Promise.all([...new Set(names)].map((name) => toolsOf(name, servers.get(name))));
      return {
        tools: parts.flatMap(({ tools }) => tools),
        diagnostics: parts.flatMap(({ diagnostics }) => diagnostics),
      };
    },
    close: async () => {
      await Promise.all([...servers.values()].map((server) => server.close()));
    },
  };
}

interface Part {
  readonly tools: readonly Tool[];
  readonly diagnostics: readonly McpDiagnostic[];
}

async function toolsOf(name: string, server: McpServer | undefined): Promise<Part> {
  const unavailable = (why: string): Part => {
    const note = `MCP server "${name}" is left out: ${why}.`;
    return { tools: [], diagnostics: [{ code: "mcp_server_unavailable", server: name, why, note }] };
  };
  if (server === undefined) return unavailable("it is not in the configuration");
  try {
    return named(name, server, await server.tools());
  } catch (error) {
    return unavailable(thrownText(error));
  }
}

/** A second tool of one name cannot be told from the first. */
function named(server: string, through: McpServer, offered: readonly McpTool[]): Part {
  const tools = new Map<string, Tool>();
  const diagnostics: McpDiagnostic[] = [];
  for (const tool of offered) {
    const name = mcpToolName(server, tool.name);
    if (!tools.has(name)) tools.set(name, toolOf(name, server, through, tool));
    else
      diagnostics.push({
        code: "mcp_tool_left_out",
        server,
        why: `it offers a second tool "${tool.name}"`,
        note: `MCP server "${server}" offers a second tool "${tool.name}"; it is left out.`,
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
    // The server knows best what it takes, and says so in its answer.
    check: async (args) => ({ args }),
    execute: (args, { signal }) => through.call(tool.name, args as Readonly<Record<string, unknown>>, signal),
  };
}

const longest = 64;
const hashLength = 8;
const other = /[^A-Za-z0-9_-]/g;

/**
 * The name of a server's tool for a model: `<server>__<tool>`, never longer than 64. Where that would not say exactly one
 * server and tool (other characters, too long, a server's name that blurs the `__`), a hash of both is its end. It depends
 * on nothing else, so a tool keeps its name whichever servers are up.
 */
export function mcpToolName(server: string, tool: string): string {
  const whole = `${server}__${tool}`;
  const clean = whole.replace(other, "_");
  const isExact = clean === whole && !server.includes("__") && !server.endsWith("_");
  if (isExact && clean.length <= longest) return clean;
  const hash = shortHash(`${server.length} ${server} ${tool}`).slice(0, hashLength);
  return `${clean.slice(0, longest - hashLength - 1)}_${hash}`;
}

/** What the names of all tools of a server begin with, cut where a hash may be their end. */
export function mcpToolPrefix(server: string): string {
  return `${server}__`.replace(other, "_").slice(0, longest - hashLength - 1);
}
