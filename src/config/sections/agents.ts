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

/** The two sides of a setting: of an agent, and of `defaults` for agents that do not set it. */

export const asDefaults = "as defaults says";

/** Of an agent. */
export function inherited<T>(about: string, kind: ValueKind<T>): Setting<T | null> {
  return setting(`${about}; null: ${asDefaults}.`, orNone(kind, "what defaults says"), null);
}

/** Of `defaults`. */
export function general<T>(about: string, kind: ValueKind<T>, fallback: T): Setting<T> {
  return setting(about, kind, fallback);
}

/** What sessions of an agent may spawn: of an agent, and of `defaults`. */

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
  allowAgents: "Agents under which its sessions may spawn others, by id, * for any; itself always",
  maxSpawnDepth: "How deep spawning may go: 1, and what was spawned spawns nothing; at most 5",
  maxChildren: "How many children of one session may be at work at once, at most 20",
  archiveAfterMinutes: "After so many minutes a child that was spawned for one task is archived; 0: never",
  allow: "Tools that sub-agents get back of those that they are denied, by name, group or glob",
  deny: "Tools that sub-agents are denied beside those, written the same way",
  maxFileBytes: "How large one attachment of a spawn may be",
  maxTotalBytes: "How large all attachments of a spawn may be together",
  keep: "Whether attachments stay when their session is archived or removed",
};
const aboutGroup = "What its sessions may spawn, and what that has.";
const aboutTools = "What is otherwise than the tools that sub-agents are denied anyway.";
const aboutAttachments = "Files that go with a spawn.";

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

/** An agent, and `defaults` with the same keys, which apply where an agent sets nothing. */

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
  `Tools that it is offered, by name, group (group:sessions) or glob; none: ${asDefaults}.`,
  text,
);
const deny = list(
  `Tools that it never gets, written the same way; wins over allow; none: ${asDefaults}.`,
  text,
);
const ask = list(
  `Tools that a person is asked about before each call, written the same way; none: ${asDefaults}.`,
  text,
);

const roots = list(
  `Folders that its sessions and their children may work in; none: ${asDefaults}.`,
  sessionFolder,
);

const agent = group("An agent. What it does not say, defaults says for it.", {
  model: inherited("Its model, as provider/model", modelKind),
  system: inherited("Its system prompt", text),
  thinking: inherited("How much it thinks, unless the session says otherwise", thinkingKind),
  cwd: inherited(
    "The folder that the agent's sessions work in, with {userId} and {agentId} replaced",
    sessionFolder,
  ),
  tools: group("Which tools it has.", { allow, deny, ask }),
  runTimeoutSeconds: inherited("How long a run may take, in seconds; 0: as long as it likes", timeoutKind),
  maxSteps: inherited("How often a turn may ask the model", stepsKind),
  sandboxed: inherited("Whether its sessions are kept from everything outside their own tree", flag),
  visibility: agentVisibility,
  roots,
  subagents: agentSubagents,
});

export const agents: Table<typeof agent> = {
  node: "table",
  about: "The agents, by id. Without any there is one, main.",
  keyName: "<agentId>",
  keyExpected: "an agent id: a to z, 0 to 9, _ and -, at most 64, beginning with a letter or digit",
  keySchema: { pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" },
  readKey: readAgentId,
  of: agent,
  fallbackKeys: ["main"],
};

const generalTools = group("Which tools agents have.", {
  allow: { ...allow, about: "Tools that agents are offered, by name, group or glob; none: all." },
  deny: { ...deny, about: "Tools that agents never get, written the same way; wins over allow." },
  ask: {
    ...ask,
    about:
      "Tools of agents that a person is asked about before each call, written the same way; none: as each tool says.",
  },
});

export const defaults = group(
  "What holds for every agent that does not say otherwise; the same keys as an agent.",
  {
    model: general(
      "The model of agents, as provider/model; null: one whose key is there, else rehearsal/basic.",
      orNone(modelKind, "one whose key is there"),
      null,
    ),
    system: general("The system prompt of agents; null: none.", orNone(text, "none"), null),
    thinking: general("How much agents think.", thinkingKind, "off"),
    cwd: general(
      "The folder that sessions work in, with {userId} and {agentId} replaced; null: a workspace in the root folder, or in the library the folder of the process.",
      orNone(sessionFolder, "the default"),
      null,
    ),
    tools: generalTools,
    runTimeoutSeconds: general(
      "How long a run may take from its first claim, in seconds, not counted while it sleeps; 0: as long as it likes.",
      timeoutKind,
      3600,
    ),
    maxSteps: general("How often a turn may ask the model.", stepsKind, 50),
    sandboxed: general(
      "Whether sessions of agents are kept from everything outside their own tree.",
      flag,
      false,
    ),
    visibility: generalVisibility,
    roots: {
      ...roots,
      about: "Folders that sessions and their children may work in; none: inside cwd, or a parent's folder.",
    },
    subagents: generalSubagents,
  },
);
