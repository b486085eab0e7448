import * as s from "../core/schema.ts";
import { reader, reference } from "./fields.ts";
import { method } from "./method.ts";

/** What maintenance would do to a session, and why. */
export const MaintenanceDecisionSchema = s.closed({
  userId: s.optional(s.string()),
  key: s.string(),
  sessionId: s.string(),
  action: s.choice(["archive", "trash", "purge"]),
  rule: s.string(),
  why: s.string(),
});
export type MaintenanceDecisionPayload = s.Static<typeof MaintenanceDecisionSchema>;

/** What maintenance means for one session: `now: …`, and a line for each rule. */
export const ExplainedSchema = s.closed({
  key: s.string(),
  sessionId: s.string(),
  lines: s.array(s.string()),
});

/** `maintenance.run`: what the rules come to, and what was done: nothing where they only warn, or it was a rehearsal. */
export const MaintenanceReportSchema = s.closed({
  mode: s.choice(["warn", "enforce"]),
  decisions: s.array(MaintenanceDecisionSchema),
  done: s.array(MaintenanceDecisionSchema),
  explained: s.optional(ExplainedSchema),
});
export type MaintenanceReportPayload = s.Static<typeof MaintenanceReportSchema>;

/** `config.get`: the configuration that holds. */
export const ConfigurationSchema = s.closed({
  file: s.optional(s.string()),
  problems: s.array(s.string()),
  /** YAML, with where each value comes from behind it, and without secrets. */
  effective: s.string(),
  /** MCP servers and ACP agents, by path, whose new command waits for `skein reload` or a restart. */
  waiting: s.optional(s.array(s.string())),
});
export type ConfigurationPayload = s.Static<typeof ConfigurationSchema>;

/** `config.reload`. */
export const ReloadSchema = s.closed({
  file: s.optional(s.string()),
  /** MCP servers and ACP agents, by path, whose new or changed command is in effect from now on. */
  commands: s.array(s.string()),
  /** Settings that changed and keep their old values until a restart. */
  restartNeeded: s.array(s.string()),
});
export type ReloadPayload = s.Static<typeof ReloadSchema>;

/** `dryRun`: what would be done, whatever the mode. `explain`: what each rule means for one session; nothing is done then. */
export const maintenanceRun = method({
  scope: "admin",
  about: "Looks after old sessions now, as the configuration says.",
  params: s.closed({
    dryRun: s.optional(s.boolean({ default: false })),
    explain: s.optional(reference),
    ...reader,
  }),
  result: MaintenanceReportSchema,
  needsAll: true,
  isIdempotent: true,
  isDestructive: true,
});

export const configGet = method({
  scope: "admin",
  about: "The configuration that holds, with where each value comes from and without secrets.",
  params: s.closed({}),
  result: ConfigurationSchema,
  needsAll: true,
  isIdempotent: true,
});

/** The only way, beside a restart, to let a running gateway start a command that its configuration did not have. */
export const configReload = method({
  scope: "admin",
  about: "Reads the configuration again and applies all of it, new commands included.",
  params: s.closed({}),
  result: ReloadSchema,
  needsAll: true,
  isIdempotent: true,
});
