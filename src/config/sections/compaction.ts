import { choice, numberBetween } from "../settings/kinds.ts";
import type { Group, Setting } from "../settings/setting.ts";

const mode: Setting<"safeguard" | "default"> = {
  node: "setting",
  about:
    "How older messages are summarised: at once (default), or in parts that fit, with the summary checked (safeguard).",
  kind: choice("safeguard", "default"),
  fallback: () => "safeguard",
};

const maxHistoryShare: Setting<number> = {
  node: "setting",
  about:
    "With safeguard: the part of the context window that one request for a summary may fill, 0.1 to 0.9.",
  kind: numberBetween(0.1, 0.9),
  fallback: () => 0.5,
};

export const compaction = {
  node: "group",
  about: "What happens when a session outgrows the model's context window.",
  fields: { mode, maxHistoryShare },
} satisfies Group;
