import { readAgentId } from "../../core/names.ts";
import {
  choiceWithOff,
  flag,
  orNone,
  sessionFolder,
  text,
  textLike,
  wholeNumber,
} from "../settings/kinds.ts";
import type { Group, List, Table, ValueKind } from "../settings/setting.ts";
import { asDefaults, general, inherited } from "./inherited.ts";
import { agentSubagents, generalSubagents } from "./subagents.ts";
import { agentVisibility, generalVisibility } from "./tools.ts";

/** An agent, and `defaults` with the same keys: what an agent does not say, `defaults` says for it. */

export type ThinkingSetting = "off" | "minimal" | "low" | "medium" | "high" | "xhigh";

const modelKind = textLike(
  "^[A-Za-z0-9][A-Za-z0-9._-]*/\\S+$",
  'a model such as "anthropic/claude-sonnet-4-6"',
);
const thinkingKind: ValueKind<ThinkingSetting> = choiceWithOff("minimal", "low", "medium", "high", "xhigh");
/** A year at the most. */
const timeoutKind = wholeNumber(0, 31_536_000);
const stepsKind = wholeNumber(1, 10_000);

const allow: List<string> = {
  node: "list",
  about: `Tools that it is offered, by name, group (group:sessions) or glob; none: ${asDefaults}.`,
  of: text,
};
const deny: List<string> = {
  node: "list",
  about: `Tools that it never gets, written the same way; wins over allow; none: ${asDefaults}.`,
  of: text,
};
const ask: List<string> = {
  node: "list",
  about: `Tools that a person is asked about before each call, written the same way; none: ${asDefaults}.`,
  of: text,
};

const roots: List<string> = {
  node: "list",
  about: `Folders that its sessions and their children may work in; none: ${asDefaults}.`,
  of: sessionFolder,
};

const agent = {
  node: "group",
  about: "An agent. What it does not say, defaults says for it.",
  fields: {
    model: inherited("Its model, as provider/model", modelKind),
    system: inherited("Its system prompt", text),
    thinking: inherited("How much it thinks, unless the session says otherwise", thinkingKind),
    cwd: inherited(
      "The folder that the agent's sessions work in, with {userId} and {agentId} replaced",
      sessionFolder,
    ),
    tools: { node: "group", about: "Which tools it has.", fields: { allow, deny, ask } },
    runTimeoutSeconds: inherited("How long a run may take, in seconds; 0: as long as it likes", timeoutKind),
    maxSteps: inherited("How often a turn may ask the model", stepsKind),
    sandboxed: inherited("Whether its sessions are kept from everything outside their own tree", flag),
    visibility: agentVisibility,
    roots,
    subagents: agentSubagents,
  },
} satisfies Group;

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

const generalTools = {
  node: "group",
  about: "Which tools agents have.",
  fields: {
    allow: { ...allow, about: "Tools that agents are offered, by name, group or glob; none: all." },
    deny: { ...deny, about: "Tools that agents never get, written the same way; wins over allow." },
    ask: {
      ...ask,
      about:
        "Tools of agents that a person is asked about before each call, written the same way; none: as each tool says.",
    },
  },
} satisfies Group;

export const defaults = {
  node: "group",
  about: "What holds for every agent that does not say otherwise; the same keys as an agent.",
  fields: {
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
} satisfies Group;
