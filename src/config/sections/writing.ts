import { choice, wholeNumber } from "../settings/kinds.ts";
import type { Group, Setting } from "../settings/setting.ts";

/** How sessions are written. */

export const durability: Setting<"full" | "os"> = {
  node: "setting",
  about:
    "When a write is acknowledged: once the disk has it (full), or once the operating system has it (os), which a power cut can lose.",
  kind: choice("full", "os"),
  fallback: () => "full",
};

const timeoutMs: Setting<number> = {
  node: "setting",
  about: "How many milliseconds a writer waits for a session that another process holds.",
  kind: wholeNumber(0, 86_400_000),
  fallback: () => 10_000,
};

export const lock = {
  node: "group",
  about: "The lock of a session file.",
  fields: { timeoutMs },
} satisfies Group;
