import { own } from "../core/own.ts";
import type { AcpPermissions } from "./sections/acp.ts";
import type { Config } from "./sections/all.ts";

/** An ACP agent as it is started. */
export interface AcpAgent {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly permissions: AcpPermissions;
}

/** How well-known agents are started, so that their name is enough. */
export const acpPresets: Readonly<
  Record<string, { readonly command: string; readonly args: readonly string[]; readonly package: string }>
> = {
  claude: { command: "claude-agent-acp", args: [], package: "@agentclientprotocol/claude-agent-acp" },
  codex: { command: "codex-acp", args: [], package: "@zed-industries/codex-acp" },
  gemini: { command: "gemini", args: ["--experimental-acp"], package: "@google/gemini-cli" },
  opencode: { command: "opencode", args: ["acp"], package: "opencode-ai" },
  pi: { command: "pi-acp", args: [], package: "pi-acp" },
};

/** The configured agent of this name; `null`: there is none, or nothing says how it is started. */
export function acpAgentOf({ acp }: Pick<Config, "acp">, name: string): AcpAgent | null {
  const settings = own(acp.agents, name);
  if (settings === undefined) return null;
  const preset = own(acpPresets, name);
  const { command, args, env, permissions } = settings;
  const start = command === null ? preset : { command, args };
  if (start === undefined) return null;
  return {
    name,
    command: start.command,
    args: command === null && args.length > 0 ? args : start.args,
    env,
    permissions: permissions ?? acp.permissions,
  };
}
