import { choice, orNone, text, textLike, wholeNumber } from "../settings/kinds.ts";
import type { Group, List, Misfit, Setting, Table, ValueKind } from "../settings/setting.ts";
import { acpPresets } from "./acp-presets.ts";
import { environment } from "./environment.ts";

/** Agents of others that are started as children and spoken to over the Agent Client Protocol. */

const permissionWords = ["allow", "ask", "deny"] as const;
export type AcpPermissions = (typeof permissionWords)[number];

const agentName: ValueKind<string> = textLike(
  "^[a-z0-9][a-z0-9_-]{0,63}$",
  "the name of an ACP agent: small letters, digits, underscore and hyphen, at most 64",
);

const command: Setting<string | null> = {
  node: "setting",
  about:
    "The program that is the agent, spoken to by stdio; null: that of the well-known agent of this name.",
  kind: orNone(text, "that of the well-known agent of this name"),
  fallback: () => null,
};
const args: List<string> = {
  node: "list",
  about: "Its arguments, in order; without command they follow those of the well-known agent.",
  of: text,
};
const env = environment(
  "Variables of its environment, beside PATH, HOME and LANG; it gets no others.",
  "A variable of its environment; never shown.",
);
const ownPermissions: Setting<AcpPermissions | null> = {
  node: "setting",
  about: "What becomes of its requests for permission; null: as acp.permissions says.",
  kind: orNone(choice(...permissionWords), "as acp.permissions says"),
  fallback: () => null,
};

const agent = {
  node: "group",
  about: `An ACP agent; of a well-known one an empty entry is enough: ${Object.keys(acpPresets).join(", ")}.`,
  fields: { command, args, env, permissions: ownPermissions },
} satisfies Group;

const agents: Table<typeof agent> = {
  node: "table",
  about: "ACP agents that sessions may spawn, by name.",
  keyName: "<agent>",
  keyExpected: agentName.expected,
  keySchema: { pattern: "^[a-z0-9][a-z0-9_-]{0,63}$" },
  readKey: (name) => (/^[a-z0-9][a-z0-9_-]{0,63}$/.test(name) ? name : null),
  of: agent,
  fallbackKeys: [],
};

const allowedAgents: List<string> = {
  node: "list",
  about: "Which of them may be spawned, by name; none: all that are configured.",
  of: agentName,
};
const defaultAgent: Setting<string | null> = {
  node: "setting",
  about: "Which one is meant where a spawn names none; null: it has to.",
  kind: orNone(agentName, "a spawn has to name one"),
  fallback: () => null,
};
const permissions: Setting<AcpPermissions> = {
  node: "setting",
  about: "What becomes of their requests for permission: allow, ask a person, or deny.",
  kind: choice(...permissionWords),
  fallback: () => "ask",
};
const maxConcurrentSessions: Setting<number> = {
  node: "setting",
  about: "How many ACP agents may run at once.",
  kind: wholeNumber(1, 1000),
  fallback: () => 8,
};
const idleMinutes: Setting<number> = {
  node: "setting",
  about: "After so many minutes without a message the process of an agent is ended; its session stays.",
  kind: wholeNumber(1, 525_600),
  fallback: () => 120,
};
const startTimeoutSeconds: Setting<number> = {
  node: "setting",
  about: "How many seconds an agent may take until its session is open.",
  kind: wholeNumber(1, 3600),
  fallback: () => 60,
};

type Values = {
  readonly agents: Readonly<Record<string, { readonly command: string | null }>>;
  readonly allowedAgents: readonly string[];
  readonly defaultAgent: string | null;
};

/** Every agent can be started, and every name is one of theirs. */
function misfits({ agents, allowedAgents, defaultAgent }: Values): readonly Misfit[] {
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

function oneOf(setting: string, names: readonly string[]): string {
  return names.length === 0
    ? `nothing, because acp.${setting} is empty`
    : `one of acp.${setting} (${names.join(", ")})`;
}

export const acp = {
  node: "group",
  about: "Agents of others, over the Agent Client Protocol.",
  fields: {
    agents,
    allowedAgents,
    defaultAgent,
    permissions,
    maxConcurrentSessions,
    idleMinutes,
    startTimeoutSeconds,
  },
  misfits,
} satisfies Group;
