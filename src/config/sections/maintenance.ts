import { bytes, choice, duration, orNone, share, wholeNumber } from "../settings/kinds.ts";
import type { Group, Setting } from "../settings/setting.ts";

const days = 86_400_000;

const mode: Setting<"warn" | "enforce"> = {
  node: "setting",
  about: "Only say what would be done (warn), or do it (enforce).",
  kind: choice("warn", "enforce"),
  fallback: () => "warn",
};

const pruneAfter: Setting<number | null> = {
  node: "setting",
  about: "A session without activity for so long goes to the trash; null: never.",
  kind: orNone(duration, "never"),
  fallback: () => 30 * days,
};

const maxSessions: Setting<number | null> = {
  node: "setting",
  about: "Beyond so many sessions of a user the oldest are archived; null: no limit.",
  kind: orNone(wholeNumber(1), "no limit"),
  fallback: () => 5000,
};

const maxDiskBytes: Setting<number | null> = {
  node: "setting",
  about: "Above so many bytes room is made: first the trash, then archived sessions; null: no limit.",
  kind: orNone(bytes, "no limit"),
  fallback: () => null,
};

const highWater: Setting<number> = {
  node: "setting",
  about: "The part of maxDiskBytes down to which room is made.",
  kind: share,
  fallback: () => 0.8,
};

const trashAfter: Setting<number | null> = {
  node: "setting",
  about: "How long the trash is kept; null: for good.",
  kind: orNone(duration, "for good"),
  fallback: () => 30 * days,
};

export const maintenance = {
  node: "group",
  about: "What happens to old sessions.",
  fields: { mode, pruneAfter, maxSessions, maxDiskBytes, highWater, trashAfter },
} satisfies Group;
