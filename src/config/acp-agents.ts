import { own } from "../core/json.ts";
import type { AcpPermissions } from "./sections/acp.ts";
import { acpPresets } from "./sections/acp-presets.ts";
import type { Config } from "./sections/all.ts";

/** The command and settings that an ACP agent is started with. */
export interface AcpAgent {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly permissions: AcpPermissions;
}

/** Returns the names of the ACP agents that sessions are allowed to spawn. */
export function acpNames({ acp }: Pick<Config, "acp">): string[] {
  const { agents, allowedAgents } = acp;
  const isAllowed = (name: string) => allowedAgents.length === 0 || allowedAgents.includes(name);
  return Object.keys(agents).filter((name) => acpAgentOf({ acp }, name) !== null && isAllowed(name));
}

/** Returns the configured agent with this name, or `null` if there is none or it has no command. */
export function acpAgentOf(
  { acp }: { readonly acp: Pick<Config["acp"], "agents" | "permissions"> },
  name: string,
): AcpAgent | null {
  const settings = own(acp.agents, name);
  if (settings === undefined) return null;
  const preset = own(acpPresets, name);
  const { command, args, env, permissions } = settings;
  const start = command === null ? preset : { command, args: [] };
  if (start === undefined) return null;
  return {
    name,
    command: start.command,
    args: [...start.args, ...args],
    env,
    permissions: permissions ?? acp.permissions,
  };
}

/** Returns installation instructions for an agent that was not found, or `null` if the agent is not well-known. */
export function acpInstall({ command }: Pick<AcpAgent, "command">): string | null {
  return Object.values(acpPresets).find((preset) => preset.command === command)?.install ?? null;
}
