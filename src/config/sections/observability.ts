import { choice, filePath, flag, httpAddress, orNone, text } from "../settings/kinds.ts";
import { group, rows, setting } from "../settings/setting.ts";

const rule = group("A rule.", {
  name: setting("A name for the rule.", text),
  pattern: setting("A regular expression; what it matches is masked. It sees one line at a time.", text),
  keep: setting(
    "What stays to be seen of a match: its first six and last four characters (ends), or nothing.",
    choice("ends", "nothing"),
    "ends",
  ),
});

export const redaction = group("What is taken out of texts as a secret.", {
  onWrite: setting(
    "Whether secrets are masked in what is written to sessions; what was masked there is gone for good.",
    flag,
    false,
  ),
  rules: rows("Rules of your own; they are added to the built-in ones.", rule),
});

/** Where spans and logs go. */

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
  file: setting(
    "The file that logs are added to; null: they go to stderr.",
    orNone(filePath, "stderr"),
    null,
  ),
});
