import { readAgentId } from "../../core/names.ts";
import {
  bytes,
  choiceWithOff,
  flag,
  orNone,
  sessionFolder,
  text,
  textLike,
  wholeNumber,
} from "../settings/kinds.ts";
import type { Setting, Table, ValueKind } from "../settings/setting.ts";
import { group, list, setting } from "../settings/setting.ts";
import { agentVisibility, generalVisibility } from "./tools.ts";

export const asDefaults = "the value in defaults";

/** Creates an agent's setting that falls back to `defaults`. */
export function inherited<T>(about: string, kind: ValueKind<T>): Setting<T | null> {
  return setting(`${about}; null: ${asDefaults}.`, orNone(kind, "what defaults says"), null);
}

/** Creates the same setting in `defaults`. */
export function general<T>(about: string, kind: ValueKind<T>, fallback: T): Setting<T> {
  return setting(about, kind, fallback);
}

/** The spawn settings for an agent and for `defaults`. */

const agentOrAny: ValueKind<string> = {
  expected: "an agent id, or * for any",
  schema: { type: "string", pattern: "^(?:\\*|[A-Za-z0-9][A-Za-z0-9_-]{0,63})$" },
  read: (written) => {
    const id = typeof written === "string" ? (written === "*" ? written : readAgentId(written)) : null;
    return id === null ? null : { value: id };
  },
  write: (value) => value,
};
const depth = wholeNumber(1, 5);
const children = wholeNumber(1, 20);
/** At most ten years. */
const minutes = wholeNumber(0, 5_256_000);

const about = {
  allowAgents: "Agents that children may run under, by ID, * for any; the agent itself is always allowed",
  maxSpawnDepth: "Maximum depth of spawning; with 1, children cannot spawn; at most 5",
  maxChildren: "Maximum number of open children of one session, at most 20",
  archiveAfterMinutes: "Minutes after which a child that was spawned for one task is archived; 0: never",
  allow: "Tools to remove from the deny list of sub-agents, by name, group or glob",
  deny: "Tools to add to the deny list of sub-agents, by name, group or glob",
  maxFileBytes: "Maximum size of one attachment of a spawn",
  maxTotalBytes: "Maximum total size of the attachments of a spawn",
  keep: "Whether attachments are kept when their session is archived or removed",
};
const aboutGroup = "What its sessions may spawn, and the limits of the children.";
const aboutTools = "Changes to the deny list of sub-agents.";
const aboutAttachments = "Files that are passed to a child.";

const own = (what: string) => `${what}; none: ${asDefaults}.`;

export const agentSubagents = group(aboutGroup, {
  allowAgents: list(own(about.allowAgents), agentOrAny),
  maxSpawnDepth: inherited(about.maxSpawnDepth, depth),
  maxChildren: inherited(about.maxChildren, children),
  archiveAfterMinutes: inherited(about.archiveAfterMinutes, minutes),
  tools: group(aboutTools, { allow: list(own(about.allow), text), deny: list(own(about.deny), text) }),
  attachments: group(aboutAttachments, {
    maxFileBytes: inherited(about.maxFileBytes, bytes),
    maxTotalBytes: inherited(about.maxTotalBytes, bytes),
    keep: inherited(about.keep, flag),
  }),
});

export const generalSubagents = group(aboutGroup, {
  allowAgents: list(`${about.allowAgents}.`, agentOrAny),
  maxSpawnDepth: general(`${about.maxSpawnDepth}.`, depth, 1),
  maxChildren: general(`${about.maxChildren}.`, children, 5),
  archiveAfterMinutes: general(`${about.archiveAfterMinutes}.`, minutes, 60),
  tools: group(aboutTools, { allow: list(`${about.allow}.`, text), deny: list(`${about.deny}.`, text) }),
  attachments: group(aboutAttachments, {
    maxFileBytes: general(`${about.maxFileBytes}.`, bytes, 1024 ** 2),
    maxTotalBytes: general(`${about.maxTotalBytes}.`, bytes, 5 * 1024 ** 2),
    keep: general(`${about.keep}.`, flag, false),
  }),
});

/** The settings for an agent, and for `defaults` with the same keys, which apply to settings that an agent leaves out. */

export type ThinkingSetting = "off" | "minimal" | "low" | "medium" | "high" | "xhigh";

const modelKind = textLike(
  "^[A-Za-z0-9][A-Za-z0-9._-]*/\\S+$",
  'a model such as "anthropic/claude-sonnet-4-6"',
);
const thinkingKind: ValueKind<ThinkingSetting> = choiceWithOff("minimal", "low", "medium", "high", "xhigh");
/** At most a year. */
const timeoutKind = wholeNumber(0, 31_536_000);
const stepsKind = wholeNumber(1, 10_000);

const allow = list(
  `Tools that it is offered, by name, group (group:sessions) or glob; empty: ${asDefaults}.`,
  text,
);
const deny = list(
  `Tools that it never gets, by name, group or glob; wins over allow; empty: ${asDefaults}.`,
  text,
);
const ask = list(
  `Tools whose calls need a person's approval, by name, group or glob; empty: ${asDefaults}.`,
  text,
);

const roots = list(
  `Folders that its sessions and their children may work in; empty: ${asDefaults}.`,
  sessionFolder,
);

const agent = group("An agent. Settings that it leaves out are taken from defaults.", {
  model: inherited("Its model, as provider/model", modelKind),
  system: inherited("Its system prompt", text),
  thinking: inherited("Its thinking level, unless the session sets another", thinkingKind),
  cwd: inherited(
    "The working directory of its sessions, with {userId} and {agentId} replaced",
    sessionFolder,
  ),
  tools: group("Which tools it has.", { allow, deny, ask }),
  runTimeoutSeconds: inherited("Timeout of a run in seconds; 0: no timeout", timeoutKind),
  maxSteps: inherited("Maximum number of requests to the model per turn", stepsKind),
  sandboxed: inherited("Whether its sessions are isolated from everything outside their own tree", flag),
  visibility: agentVisibility,
  roots,
  subagents: agentSubagents,
});

export const agents: Table<typeof agent> = {
  node: "table",
  about: "The agents, by ID. If none is configured, there is one, main.",
  keyName: "<agentId>",
  keyExpected: "an agent id: a to z, 0 to 9, _ and -, at most 64, beginning with a letter or digit",
  keySchema: { pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" },
  readKey: readAgentId,
  of: agent,
  fallbackKeys: ["main"],
};

const generalTools = group("Which tools agents have.", {
  allow: { ...allow, about: "Tools that agents are offered, by name, group or glob; empty: all." },
  deny: { ...deny, about: "Tools that agents never get, by name, group or glob; wins over allow." },
  ask: {
    ...ask,
    about:
      "Tools whose calls need a person's approval, by name, group or glob; empty: only those that require it themselves.",
  },
});

export const defaults = group("Settings of agents that leave them out; the same keys as an agent.", {
  model: general(
    "The model of agents, as provider/model; null: one whose API key is set, or rehearsal/basic.",
    orNone(modelKind, "one whose API key is set"),
    null,
  ),
  system: general("The system prompt of agents; null: none.", orNone(text, "none"), null),
  thinking: general("The thinking level of agents.", thinkingKind, "off"),
  cwd: general(
    "The working directory of sessions, with {userId} and {agentId} replaced; null: a workspace in the root folder, or in the library the current directory of the process.",
    orNone(sessionFolder, "the default"),
    null,
  ),
  tools: generalTools,
  runTimeoutSeconds: general(
    "Timeout of a run from its first claim, in seconds, not counting sleep; 0: no timeout.",
    timeoutKind,
    3600,
  ),
  maxSteps: general("Maximum number of requests to the model per turn.", stepsKind, 50),
  sandboxed: general(
    "Whether sessions of agents are isolated from everything outside their own tree.",
    flag,
    false,
  ),
  visibility: generalVisibility,
  roots: {
    ...roots,
    about: "Folders that sessions and their children may work in; empty: inside cwd, or a parent's folder.",
  },
  subagents: generalSubagents,
});
