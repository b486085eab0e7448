import { readAgentId } from "../../core/names.ts";
import { choiceWithOff, folderPath, orNone, text, textLike } from "../settings/kinds.ts";
import type { Group, Setting, Table } from "../settings/setting.ts";

const cwd: Setting<string | null> = {
  node: "setting",
  about: "The folder that the agent's sessions work in; null: where the caller stands.",
  kind: orNone(folderPath, "the caller's own"),
  fallback: () => null,
};

const model: Setting<string | null> = {
  node: "setting",
  about: "Its model, as provider/model; null: one whose key is there.",
  kind: orNone(
    textLike("^[A-Za-z0-9][A-Za-z0-9._-]*/\\S+$", 'a model such as "anthropic/claude-sonnet-4-5"'),
    "one whose key is there",
  ),
  fallback: () => null,
};

const system: Setting<string | null> = {
  node: "setting",
  about: "Its system prompt; null: none.",
  kind: orNone(text, "none"),
  fallback: () => null,
};

const thinking: Setting<"off" | "minimal" | "low" | "medium" | "high" | "xhigh" | null> = {
  node: "setting",
  about: "How much it thinks, unless the session says otherwise; null: not at all (off).",
  kind: orNone(choiceWithOff("minimal", "low", "medium", "high", "xhigh"), "off"),
  fallback: () => null,
};

const agent = { node: "group", about: "An agent.", fields: { model, system, thinking, cwd } } satisfies Group;

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
