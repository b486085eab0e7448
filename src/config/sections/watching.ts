import { choice, filePath, httpAddress, orNone } from "../settings/kinds.ts";
import type { Group, Setting } from "../settings/setting.ts";

/** Where spans and logs go. */

export type LogLevel = "silent" | "error" | "warn" | "info" | "debug";

const otlp: Setting<string | null> = {
  node: "setting",
  about: "Where OpenTelemetry spans are sent, over OTLP and HTTP; null: nowhere.",
  kind: orNone(httpAddress, "nowhere"),
  fallback: () => null,
};

export const telemetry = {
  node: "group",
  about: "Spans of runs, model calls and tools.",
  fields: { otlp },
} satisfies Group;

const level: Setting<LogLevel> = {
  node: "setting",
  about: "The lowest level that is logged.",
  kind: choice("silent", "error", "warn", "info", "debug"),
  fallback: () => "warn",
};

const file: Setting<string | null> = {
  node: "setting",
  about: "The file that logs are added to; null: they go to stderr.",
  kind: orNone(filePath, "stderr"),
  fallback: () => null,
};

export const logging = {
  node: "group",
  about: "What is logged, and where.",
  fields: { level, file },
} satisfies Group;
