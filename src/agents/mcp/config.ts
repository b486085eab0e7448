import { SkeinError } from "../../core/errors.ts";

/** A server that is a child process and speaks over its standard input and output. */
export interface McpCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Beside PATH, HOME and LANG it is given these and nothing else. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** How long a call may take; by default 60,000. */
  readonly timeoutMs?: number;
  /** A person is asked before each call of its tools; by default nobody is. */
  readonly approval?: boolean;
}

/** A server that is asked over Streamable HTTP. */
export interface McpAddress {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly approval?: boolean;
}

export type McpServerConfig = McpCommand | McpAddress;

/** Refuses what cannot be a server. Whether it is one shows when it is first used. */
export function checkMcpConfig(servers: Readonly<Record<string, McpServerConfig>>): void {
  for (const [name, server] of Object.entries(servers)) {
    const problem = problemOf(name, server);
    if (problem === null) continue;
    const advice = "Give it a command, or a url that begins with http:// or https://";
    throw new SkeinError("invalid_arguments", { problem: `MCP server "${name}" ${problem}`, advice });
  }
}

function problemOf(name: string, server: McpServerConfig): string | null {
  if (name.trim() === "") return "has no name";
  if ("command" in server && "url" in server) return "has both a command and a url";
  const { timeoutMs } = server;
  if (timeoutMs !== undefined && !(Number.isFinite(timeoutMs) && timeoutMs > 0))
    return "has a wrong timeoutMs";
  if ("command" in server) return server.command === "" ? "has an empty command" : null;
  return /^https?:$/.test(URL.parse(server.url)?.protocol ?? "") ? null : "has neither a command nor a url";
}
