import { choice, orNone, text, textLike, wholeNumber } from "../settings/kinds.ts";
import type { Group, List, Setting, Table, ValueKind } from "../settings/setting.ts";

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
const args: List<string> = { node: "list", about: "With command: its arguments, in order.", of: text };
const variable: Setting<string> = {
  node: "setting",
  about: "A variable of its environment; never shown.",
  kind: textLike("^[^\\u0000]*$", "text"),
  secret: true,
};
const env: Table<typeof variable> = {
  node: "table",
  about: "Variables of its environment, beside PATH, HOME and LANG; it gets no others.",
  keyName: "<variable>",
  keyExpected: "the name of a variable: letters, digits and underscore",
  keySchema: { pattern: "^[A-Za-z_][A-Za-z0-9_]*$", not: { const: "__proto__" } },
  readKey: (name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && name !== "__proto__" ? name : null),
  of: variable,
  fallbackKeys: [],
  keepsCase: true,
};
const ownPermissions: Setting<AcpPermissions | null> = {
  node: "setting",
  about: "What becomes of its requests for permission; null: as acp.permissions says.",
  kind: orNone(choice(...permissionWords), "as acp.permissions says"),
  fallback: () => null,
};

const agent = {
  node: "group",
  about: "An ACP agent; of a well-known one an empty entry is enough.",
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
} satisfies Group;
