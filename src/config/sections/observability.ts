import { choice, filePath, flag, httpAddress, orNone, text } from "../settings/kinds.ts";
import { group, rows, setting } from "../settings/setting.ts";

const rule = group("A rule.", {
  name: setting("A name for the rule.", text),
  pattern: setting("A regular expression, applied to one line at a time. Every match is masked.", text),
  keep: setting(
    "The part of a match that stays visible: its first six and last four characters (`ends`), or nothing (`nothing`).",
    choice("ends", "nothing"),
    "ends",
  ),
});

export const redaction = group("Masking of secrets in text.", {
  onWrite: setting(
    "Whether to mask secrets before they are written to sessions. This cannot be undone.",
    flag,
    false,
  ),
  rules: rows("Your own rules, in addition to the built-in ones.", rule),
});

export type LogLevel = "silent" | "error" | "warn" | "info" | "debug";

export const telemetry = group("Spans for runs, model calls and tool calls.", {
  otlp: setting(
    "The URL to send OpenTelemetry spans to, using OTLP over HTTP. `null` means that no spans are sent.",
    orNone(httpAddress, "nowhere"),
    null,
  ),
});

export const logging = group("What is logged, and where.", {
  level: setting("The lowest level to log.", choice("silent", "error", "warn", "info", "debug"), "warn"),
  file: setting("The file to append the log to. `null` means stderr.", orNone(filePath, "stderr"), null),
});
