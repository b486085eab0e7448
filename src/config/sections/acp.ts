import { choice, orNone, text, textLike, wholeNumber } from "../settings/kinds.ts";
import type { Conflict } from "../settings/setting.ts";
import { group, list, setting, table } from "../settings/setting.ts";
import { acpPresets } from "./acp-presets.ts";
import { environment, keysLike } from "./tables.ts";

const permissionWords = ["allow", "ask", "deny"] as const;
export type AcpPermissions = (typeof permissionWords)[number];

const agentPattern = "^[a-z0-9][a-z0-9_-]{0,63}$";
const agentName = textLike(
  agentPattern,
  "an ACP agent name: up to 64 lowercase letters, digits, underscores and hyphens",
);

const ownPermissions = setting(
  "How the agent's permission requests are answered. Defaults to `acp.permissions`.",
  orNone(choice(...permissionWords), "the value of acp.permissions"),
  null,
);

const agent = group(
  `An ACP agent. An empty entry is enough for a well-known agent: ${Object.keys(acpPresets).join(", ")}.`,
  {
    command: setting(
      "The program to start; it must support ACP over stdio. Defaults to the command of the well-known agent with this name.",
      orNone(text, "the command of the well-known agent with this name"),
      null,
    ),
    args: list(
      "Command-line arguments. If `command` is not set, they are appended to the well-known agent's arguments.",
      text,
    ),
    env: environment(
      "Environment variables for the agent, in addition to PATH, HOME and LANG. No other variables are passed on.",
      "An environment variable. Its value is never shown.",
    ),
    permissions: ownPermissions,
  },
);

const agents = table(
  "ACP agents that sessions may spawn, by name.",
  keysLike("<agent>", agentName.expected, agentPattern),
  agent,
);

const allowedAgents = list(
  "Names of the ACP agents that sessions may spawn. If empty, all configured agents are allowed.",
  agentName,
);
const defaultAgent = setting(
  "The agent to use when a spawn does not name one. `null` means that every spawn must name an agent.",
  orNone(agentName, "no default agent"),
  null,
);

type Values = {
  readonly agents: Readonly<Record<string, { readonly command: string | null }>>;
  readonly allowedAgents: readonly string[];
  readonly defaultAgent: string | null;
};

/** Reports agents without a command, and names that do not match a configured agent. */
function conflicts({ agents, allowedAgents, defaultAgent }: Values): readonly Conflict[] {
  const known = Object.keys(acpPresets);
  const configured = Object.keys(agents);
  const allowed = allowedAgents.length === 0 ? configured : allowedAgents;
  const nameless = configured
    .filter((name) => agents[name]?.command === null && !Object.hasOwn(acpPresets, name))
    .map((name) => ({
      at: ["agents", name],
      found: "no command",
      expected: `a command, or the name of a well-known agent (${known.join(", ")})`,
      words: known,
    }));
  const strange = allowedAgents.flatMap((name, index) =>
    configured.includes(name)
      ? []
      : [{ at: ["allowedAgents", String(index)], expected: oneOf("agents", configured), words: configured }],
  );
  const isDefaultStrange = defaultAgent !== null && strange.length === 0 && !allowed.includes(defaultAgent);
  const whose = allowedAgents.length === 0 ? "agents" : "allowedAgents";
  const wrongDefault = { at: ["defaultAgent"], expected: oneOf(whose, allowed), words: allowed };
  return [...nameless, ...strange, ...(isDefaultStrange ? [wrongDefault] : [])];
}

function oneOf(key: string, names: readonly string[]): string {
  return names.length === 0
    ? `nothing, because acp.${key} is empty`
    : `one of acp.${key} (${names.join(", ")})`;
}

export const acp = group(
  "External agents that use the Agent Client Protocol.",
  {
    agents,
    allowedAgents,
    defaultAgent,
    permissions: setting(
      "How agents' permission requests are answered: `allow`, `ask` a person, or `deny`.",
      choice(...permissionWords),
      "ask",
    ),
    maxConcurrentSessions: setting(
      "Maximum number of ACP agents that run at the same time.",
      wholeNumber(1, 1000),
      8,
    ),
    idleMinutes: setting(
      "Minutes without a message after which an agent's process is stopped. The agent's session is kept.",
      wholeNumber(1, 525_600),
      120,
    ),
    startTimeoutSeconds: setting(
      "Seconds to wait for an agent to open its session.",
      wholeNumber(1, 3600),
      60,
    ),
  },
  { conflicts },
);
