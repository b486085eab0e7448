import { own } from "../core/json.ts";
import { acpAgentOf } from "./acp-agents.ts";
import type { LoadedConfig } from "./load.ts";
import type { Config } from "./sections/all.ts";
import type { Source } from "./tree.ts";

/**
 * Restricts a new configuration to the commands that an operator has accepted. An MCP server or ACP agent whose
 * command, arguments, environment or folder has changed keeps its accepted settings. A new server or agent is omitted.
 * `waiting` lists both kinds.
 */
export function holdCommands(accepted: LoadedConfig, next: LoadedConfig): LoadedConfig {
  const [before, after] = [accepted.config, next.config];
  const mcp = holdRows(before.mcpServers, after.mcpServers, (_, server) => mcpLaunch(server));
  const acp = holdRows(before.acp.agents, after.acp.agents, (name, agent) => acpLaunch(name, agent));
  const waiting = [
    ...mcp.held.map((name) => `mcpServers.${name}`),
    ...acp.held.map((name) => `acp.agents.${name}`),
  ];
  if (waiting.length === 0) return next;
  const { defaultAgent } = after.acp;
  const isDefaultThere = defaultAgent !== null && Object.hasOwn(acp.rows, defaultAgent);
  const config = {
    ...after,
    mcpServers: mcp.rows,
    acp: { ...after.acp, agents: acp.rows, defaultAgent: isDefaultThere ? defaultAgent : null },
  };
  const sources = keepSources(accepted.sources, next.sources, waiting);
  return { ...next, config: Object.freeze(config), sources, waiting };
}

/**
 * `launchOf` returns everything that determines which program is started and how, or `null` if the row starts no
 * program.
 */
function holdRows<Row>(
  accepted: Readonly<Record<string, Row>>,
  next: Readonly<Record<string, Row>>,
  launchOf: (name: string, row: Row) => string | null,
): { readonly rows: Readonly<Record<string, Row>>; readonly held: readonly string[] } {
  const known = new Set(Object.entries(accepted).map(([name, row]) => launchOf(name, row)));
  const isKnown = ([name, row]: readonly [string, Row]) => {
    const launch = launchOf(name, row);
    return launch === null || known.has(launch);
  };
  const rows = Object.entries(next).flatMap(([name, row]): [string, Row][] => {
    if (isKnown([name, row])) return [[name, row]];
    const old = own(accepted, name);
    return old === undefined ? [] : [[name, old]];
  });
  const held = Object.entries(next).filter((entry) => !isKnown(entry));
  return { rows: Object.fromEntries(rows), held: held.map(([name]) => name) };
}

function mcpLaunch({ command, args, env, cwd }: Config["mcpServers"][string]): string | null {
  return command === null ? null : JSON.stringify([command, args, sortedEntries(env), cwd]);
}

function acpLaunch(name: string, settings: Config["acp"]["agents"][string]): string | null {
  // A row without a command uses the command of the well-known agent with the same name.
  const agent = acpAgentOf({ acp: { agents: { [name]: settings }, permissions: "ask" } }, name);
  return agent === null ? null : JSON.stringify([agent.command, agent.args, sortedEntries(agent.env)]);
}

function sortedEntries(env: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(env).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** Held settings keep their previous sources. */
function keepSources(
  accepted: ReadonlyMap<string, Source>,
  next: ReadonlyMap<string, Source>,
  held: readonly string[],
): ReadonlyMap<string, Source> {
  const isHeld = ([path]: readonly [string, Source]) => held.some((each) => path.startsWith(`${each}.`));
  return new Map([...[...next].filter((each) => !isHeld(each)), ...[...accepted].filter(isHeld)]);
}
