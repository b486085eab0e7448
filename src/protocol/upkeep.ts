import * as s from "../core/schema.ts";
import { reader, reference } from "./fields.ts";
import { method } from "./method.ts";

/** The action that maintenance would take on a session, and why. */
const decisionFields = {
  userId: s.optional(s.string()),
  key: s.string(),
  sessionId: s.string(),
  action: s.choice(["archive", "trash", "purge"]),
  rule: s.string(),
  why: s.string(),
};
export const MaintenanceDecisionSchema = s.closed(decisionFields);
export type MaintenanceDecisionPayload = s.Static<typeof MaintenanceDecisionSchema>;

/** How maintenance affects one session. The first line is `now: …`, followed by a line for each rule. */
export const ExplainedSchema = s.closed({
  key: s.string(),
  sessionId: s.string(),
  lines: s.array(s.string()),
});

/**
 * `maintenance.run`: the planned actions, the completed ones and the ones that failed. With mode `warn` or `dryRun`, no
 * actions are carried out.
 */
export const MaintenanceReportSchema = s.closed({
  mode: s.choice(["warn", "enforce"]),
  decisions: s.array(MaintenanceDecisionSchema),
  done: s.array(MaintenanceDecisionSchema),
  failed: s.optional(s.array(s.closed({ ...decisionFields, problem: s.string() }))),
  explained: s.optional(ExplainedSchema),
});
export type MaintenanceReportPayload = s.Static<typeof MaintenanceReportSchema>;

/** `config.get`: the effective configuration. */
export const ConfigurationSchema = s.closed({
  file: s.optional(s.string()),
  problems: s.array(s.string()),
  /** YAML without secrets. A comment after each value gives its source. */
  effective: s.string(),
  /** The paths of MCP servers and ACP agents whose new command takes effect after `skein reload` or a restart. */
  waiting: s.optional(s.array(s.string())),
});
export type ConfigurationPayload = s.Static<typeof ConfigurationSchema>;

/** `config.reload`. */
export const ReloadSchema = s.closed({
  file: s.optional(s.string()),
  /** The paths of MCP servers and ACP agents whose new or changed command is now in effect. */
  commands: s.array(s.string()),
  /** Settings that have changed but keep their old values until a restart. */
  restartNeeded: s.array(s.string()),
});
export type ReloadPayload = s.Static<typeof ReloadSchema>;

/** `dryRun` only reports, regardless of the mode. `explain` reports how each rule affects one session and changes nothing. */
export const maintenanceRun = method({
  scope: "admin",
  about: "Runs maintenance now, according to `session.maintenance`.",
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
  about: "Returns the effective configuration without secrets, with the source of each value.",
  params: s.closed({}),
  result: ConfigurationSchema,
  needsAll: true,
  isIdempotent: true,
});

/** Besides a restart, this is the only way to make a running gateway start a command that was added to its configuration. */
export const configReload = method({
  scope: "admin",
  about: "Reloads the configuration and applies all of it, including new commands.",
  params: s.closed({}),
  result: ReloadSchema,
  needsAll: true,
  isIdempotent: true,
});
