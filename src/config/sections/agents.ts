import { readAgentId } from "../../core/names.ts";
import type { ThinkingLevel } from "../../core/thinking-levels.ts";
import { thinkingLevels } from "../../core/thinking-levels.ts";
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

/** Creates a setting of an agent. The setting falls back to `defaults`. */
export function inherited<T>(about: string, kind: ValueKind<T>): Setting<T | null> {
  return setting(
    `${about}. Defaults to the value in \`defaults\`.`,
    orNone(kind, "the value in defaults"),
    null,
  );
}

/** Creates the same setting in `defaults`. */
export function general<T>(about: string, kind: ValueKind<T>, fallback: T): Setting<T> {
  return setting(about, kind, fallback);
}

const agentOrAny: ValueKind<string> = {
  expected: "an agent ID, or * for any agent",
  schema: { type: "string", pattern: "^(?:\\*|[A-Za-z0-9][A-Za-z0-9_-]{0,63})$" },
  read: (written) => {
    const id = typeof written === "string" ? (written === "*" ? written : readAgentId(written)) : null;
    return id === null ? null : { value: id };
  },
  write: (value) => value,
};
const depth = wholeNumber(1, 5);
const children = wholeNumber(1, 20);
/** The maximum is ten years. */
const minutes = wholeNumber(0, 5_256_000);

const about = {
  allowAgents:
    "IDs of the agents that child sessions may use, or `*` for any. The agent itself is always allowed",
  maxSpawnDepth: "Maximum spawn depth, from 1 to 5. With 1, child sessions cannot spawn",
  maxChildren: "Maximum number of active child sessions per session, from 1 to 20",
  archiveAfterMinutes:
    "Minutes after which a child session that was spawned for a single task is archived. `0` means never",
  allow: "Tools to remove from the default deny list for sub-agents, by name, group or glob",
  deny: "Tools to add to the default deny list for sub-agents, by name, group or glob",
  maxFileBytes: "Maximum size of an attachment",
  maxTotalBytes: "Maximum total size of the attachments passed to one child session",
  keep: "Whether to keep attachments when their session is archived or removed",
};
const aboutGroup = "What sessions may spawn, and limits for the child sessions.";
const aboutTools = "Changes to the default deny list for sub-agents.";
const aboutAttachments = "Files passed to a child session.";

const own = (what: string) => `${what}. If empty, the value in \`defaults\` applies.`;

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

const modelKind = textLike(
  "^[A-Za-z0-9][A-Za-z0-9._-]*/\\S+$",
  'a model such as "anthropic/claude-sonnet-4-6"',
);
const [, ...levelsAboveOff] = thinkingLevels;
const thinkingKind: ValueKind<ThinkingLevel> = choiceWithOff(...levelsAboveOff);
/** The maximum is one year. */
const timeoutKind = wholeNumber(0, 31_536_000);
const stepsKind = wholeNumber(1, 10_000);

const allow = list(
  "Tools that the agent is offered, by name, group (`group:sessions`) or glob. If empty, the value in `defaults` applies.",
  text,
);
const deny = list(
  "Tools that the agent is never offered, by name, group or glob. Overrides `allow`. If empty, the value in `defaults` applies.",
  text,
);
const ask = list(
  "Tools whose calls need a person's approval, by name, group or glob. If empty, the value in `defaults` applies.",
  text,
);

const roots = list(
  "Folders that the agent's sessions and their children may work in. If empty, the value in `defaults` applies.",
  sessionFolder,
);

const agent = group("An agent. Settings that it omits are taken from `defaults`.", {
  model: inherited("The agent's model, as `provider/model`", modelKind),
  system: inherited("The agent's system prompt", text),
  thinking: inherited("The agent's thinking level, which a session can override", thinkingKind),
  cwd: inherited(
    "The working directory for the agent's sessions. `{userId}` and `{agentId}` are replaced",
    sessionFolder,
  ),
  tools: group("The agent's tools.", { allow, deny, ask }),
  runTimeoutSeconds: inherited("Run timeout in seconds. `0` means no timeout", timeoutKind),
  maxSteps: inherited("Maximum number of model requests per turn", stepsKind),
  sandboxed: inherited(
    "Whether the agent's sessions are isolated from everything outside their own tree",
    flag,
  ),
  visibility: agentVisibility,
  roots,
  subagents: agentSubagents,
});

export const agents: Table<typeof agent> = {
  node: "table",
  about: "The agents, by ID. If none is configured, there is a single agent, `main`.",
  keyName: "<agentId>",
  keyExpected:
    "an agent ID: up to 64 letters, digits, underscores and hyphens, starting with a letter or digit",
  keySchema: { pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" },
  readKey: readAgentId,
  of: agent,
  fallbackKeys: ["main"],
};

const generalTools = group("Tools for agents.", {
  allow: {
    ...allow,
    about: "Tools that agents are offered, by name, group or glob. If empty, all tools are offered.",
  },
  deny: { ...deny, about: "Tools that agents are never offered, by name, group or glob. Overrides `allow`." },
  ask: {
    ...ask,
    about:
      "Tools whose calls need a person's approval, by name, group or glob. If empty, only tools that themselves require approval need it.",
  },
});

export const defaults = group("Values for settings that an agent omits. Has the same keys as an agent.", {
  model: general(
    "The default model for agents, as `provider/model`. `null` means a model from the first provider with an API key, or `rehearsal/basic` if there is no key.",
    orNone(modelKind, "a model whose API key is set"),
    null,
  ),
  system: general(
    "The default system prompt for agents. `null` means no system prompt.",
    orNone(text, "no system prompt"),
    null,
  ),
  thinking: general("The default thinking level for agents.", thinkingKind, "off"),
  cwd: general(
    "The default working directory for sessions. `{userId}` and `{agentId}` are replaced. `null` means a workspace in the root folder, or the current directory when Skein is used as a library.",
    orNone(sessionFolder, "the default directory"),
    null,
  ),
  tools: generalTools,
  runTimeoutSeconds: general(
    "Run timeout in seconds, measured from when the run is first claimed. Time spent sleeping does not count. `0` means no timeout.",
    timeoutKind,
    3600,
  ),
  maxSteps: general("Maximum number of requests to the model per turn.", stepsKind, 50),
  sandboxed: general("Whether sessions are isolated from everything outside their own tree.", flag, false),
  visibility: generalVisibility,
  roots: {
    ...roots,
    about:
      "Folders that sessions and their children may work in. If empty, they must work inside `cwd` or their parent's folder.",
  },
  subagents: generalSubagents,
});
