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
  "the name of an ACP agent: small letters, digits, underscore and hyphen, at most 64",
);

const ownPermissions = setting(
  "How its requests for permission are answered; null: the value of acp.permissions.",
  orNone(choice(...permissionWords), "as acp.permissions says"),
  null,
);

const agent = group(
  `An ACP agent; for a well-known one an empty entry is enough: ${Object.keys(acpPresets).join(", ")}.`,
  {
    command: setting(
      "The agent's program, which speaks ACP over stdio; null: that of the well-known agent of this name.",
      orNone(text, "that of the well-known agent of this name"),
      null,
    ),
    args: list(
      "Its arguments, in order; without command they are appended to those of the well-known agent.",
      text,
    ),
    env: environment(
      "Environment variables in addition to PATH, HOME and LANG; it gets no others.",
      "An environment variable; never shown.",
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
  "Which of them may be spawned, by name; empty: all that are configured.",
  agentName,
);
const defaultAgent = setting(
  "The agent for spawns that do not name one; null: a spawn must name one.",
  orNone(agentName, "a spawn has to name one"),
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
  "External agents, over the Agent Client Protocol.",
  {
    agents,
    allowedAgents,
    defaultAgent,
    permissions: setting(
      "How their requests for permission are answered: allow, ask a person, or deny.",
      choice(...permissionWords),
      "ask",
    ),
    maxConcurrentSessions: setting("How many ACP agents may run at once.", wholeNumber(1, 1000), 8),
    idleMinutes: setting(
      "Minutes without a message after which the process of an agent is ended; its session stays.",
      wholeNumber(1, 525_600),
      120,
    ),
    startTimeoutSeconds: setting(
      "Seconds that an agent may take to open its session.",
      wholeNumber(1, 3600),
      60,
    ),
  },
  { conflicts },
);
