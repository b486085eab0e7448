import { choice } from "../settings/kinds.ts";
import type { Group, Setting } from "../settings/setting.ts";
import { maintenance } from "./maintenance.ts";
import { reset } from "./reset.ts";

const scope: Setting<"per-sender" | "global"> = {
  node: "setting",
  about: "Whether each sender has sessions of their own (per-sender), or all share one (global).",
  kind: choice("per-sender", "global"),
  fallback: () => "per-sender",
};

export const session = {
  node: "group",
  about: "How sessions begin and end.",
  fields: { scope, reset, maintenance },
} satisfies Group;
