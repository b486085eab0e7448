import { choice, filePath, flag, httpAddress, orNone, text } from "../settings/kinds.ts";
import { group, rows, setting } from "../settings/setting.ts";

const rule = group("A rule.", {
  name: setting("A name for the rule.", text),
  pattern: setting("A regular expression; every match is masked. It is applied to one line at a time.", text),
  keep: setting(
    "What remains visible of a match: its first six and last four characters (ends), or nothing.",
    choice("ends", "nothing"),
    "ends",
  ),
});

export const redaction = group("Masking of secrets in texts.", {
  onWrite: setting(
    "Whether secrets are masked before they are written to sessions, which cannot be undone.",
    flag,
    false,
  ),
  rules: rows("Your own rules, in addition to the built-in ones.", rule),
});

export type LogLevel = "silent" | "error" | "warn" | "info" | "debug";

export const telemetry = group("Spans of runs, model calls and tools.", {
  otlp: setting(
    "Where OpenTelemetry spans are sent, over OTLP and HTTP; null: nowhere.",
    orNone(httpAddress, "nowhere"),
    null,
  ),
});

export const logging = group("What is logged, and where.", {
  level: setting(
    "The lowest level that is logged.",
    choice("silent", "error", "warn", "info", "debug"),
    "warn",
  ),
  file: setting("The file that the log is appended to; null: stderr.", orNone(filePath, "stderr"), null),
});
