import { choiceWithOff, duration, text } from "../settings/kinds.ts";
import type { Group, List, Setting } from "../settings/setting.ts";

const mode: Setting<"off" | "cache-ttl"> = {
  node: "setting",
  about:
    "Whether old tool results make room in requests: never (off), or once the prompt cache is cold (cache-ttl).",
  kind: choiceWithOff("cache-ttl"),
  fallback: () => "off",
};

const ttl: Setting<number> = {
  node: "setting",
  about: "How long after a request the provider's prompt cache counts as warm.",
  kind: duration,
  fallback: () => 300_000,
};

const allow: List<string> = {
  node: "list",
  about: "Tools whose results may be pruned, as globs (* and ?); none: all.",
  of: text,
};

const deny: List<string> = {
  node: "list",
  about: "Tools whose results are never pruned, as globs; wins over allow.",
  of: text,
};

const tools = {
  node: "group",
  about: "Which tools' results may be pruned.",
  fields: { allow, deny },
} satisfies Group;

export const contextPruning = {
  node: "group",
  about: "When old tool results make room; in memory only, the session keeps them.",
  fields: { mode, ttl, tools },
} satisfies Group;
