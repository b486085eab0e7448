import { readAgentId } from "../../core/names.ts";
import { folderPath, orNone } from "../settings/kinds.ts";
import type { Group, Setting, Table } from "../settings/setting.ts";

const cwd: Setting<string | null> = {
  node: "setting",
  about: "The folder that the agent's sessions work in; null: where the caller stands.",
  kind: orNone(folderPath, "the caller's own"),
  fallback: () => null,
};

const agent = { node: "group", about: "An agent.", fields: { cwd } } satisfies Group;

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
