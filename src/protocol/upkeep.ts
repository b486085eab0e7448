import * as s from "../core/schema.ts";
import { IndexingSchema } from "./session-list.ts";

/** What looking after a folder answers. */

const LeftOutSchema = s.closed({ what: s.string(), instead: s.string() });

const copied = {
  folder: s.string(),
  files: s.integer(),
  bytes: s.integer(),
  /** The configuration file that was copied, by its name in the folder; left out: there was none. */
  configuration: s.optional(s.string()),
  /** What is not in it, and what to do about that. */
  leftOut: s.array(LeftOutSchema),
};

/** `users.list`, `users ls`: in the order of their IDs. */
export const UserListSchema = s.closed({
  count: s.integer(),
  users: s.array(
    s.closed({
      /** Absent: the unnamed user. */
      userId: s.optional(s.string()),
      /** The folders of the sessions, where a program named a namespace; absent: those of the user. */
      namespace: s.optional(s.array(s.string())),
      /** The name of the store in `createSkein({ stores })`; absent: the folder's own. */
      store: s.optional(s.string()),
      /** Those in the trash are left out. */
      sessions: s.integer(),
      runs: s.integer(),
      openRuns: s.integer(),
      /** Spent in its sessions. */
      totalTokens: s.integer(),
      /** Valid tokens of the gateway for this user alone. */
      accessTokens: s.integer(),
      /** Of the logs of its sessions. */
      bytes: s.integer(),
      /** When something was last said in a session; absent: there is none. */
      lastActiveAt: s.optional(s.integer()),
    }),
  ),
  nextCursor: s.optional(s.string()),
  indexing: s.optional(IndexingSchema),
});
export type UserListPayload = s.Static<typeof UserListSchema>;
export type UserRow = UserListPayload["users"][number];

/** `backup`. */
export const BackupSchema = s.closed(copied);
export type BackupPayload = s.Static<typeof BackupSchema>;

/** `restore`. */
export const RestoreSchema = s.closed({
  ...copied,
  createdAt: s.string(),
  /** What `store` of the configuration says now; absent: the configuration sets none. */
  store: s.optional(s.string()),
});
export type RestorePayload = s.Static<typeof RestoreSchema>;

/** Something that a look at the files found. */
export const FindingSchema = s.closed({
  area: s.string(),
  severity: s.choice(["note", "warning", "error"]),
  file: s.string(),
  what: s.string(),
  remedy: s.string(),
  fixable: s.boolean(),
  fixed: s.boolean(),
});
export type FindingPayload = s.Static<typeof FindingSchema>;

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
const ExplainedSchema = s.closed({ key: s.string(), sessionId: s.string(), lines: s.array(s.string()) });

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

/** A configured ACP agent as it was found: whether it is there, and what it says of itself. */
export const AcpAgentSchema = s.closed({
  name: s.string(),
  command: s.string(),
  /** The file that is started; left out: there is none. */
  file: s.optional(s.string()),
  isAllowed: s.boolean(),
  isDefault: s.boolean(),
  answers: s.boolean(),
  /** Why it does not answer. */
  problem: s.optional(s.string()),
  /** Of one that is not there: how it is installed, where that is known. */
  install: s.optional(s.string()),
  title: s.optional(s.string()),
  version: s.optional(s.string()),
  protocolVersion: s.optional(s.integer()),
  /** What it can do with sessions beside beginning one. */
  can: s.optional(s.closed({ load: s.boolean(), resume: s.boolean(), fork: s.boolean(), list: s.boolean() })),
  authMethods: s.optional(s.array(s.string())),
});
export type AcpAgentPayload = s.Static<typeof AcpAgentSchema>;

/** The ACP agents of a configuration, and well-known ones that are here and that nobody has configured. */
export const AcpAgentsSchema = s.closed({
  agents: s.array(AcpAgentSchema),
  others: s.array(s.closed({ name: s.string(), title: s.string(), file: s.string() })),
});
export type AcpAgentsPayload = s.Static<typeof AcpAgentsSchema>;

export const McpServerSchema = s.closed({
  name: s.string(),
  answers: s.boolean(),
  /** How many tools it offers. */
  tools: s.optional(s.integer()),
  /** Why it does not answer. */
  problem: s.optional(s.string()),
});
export type McpServerPayload = s.Static<typeof McpServerSchema>;

/** `doctor`. */
export const DoctorSchema = s.closed({
  /** No error remains. */
  ok: s.boolean(),
  node: s.closed({ version: s.string(), needed: s.string(), ok: s.boolean() }),
  folder: s.closed({ path: s.string(), from: s.string(), exists: s.boolean() }),
  findings: s.array(FindingSchema),
  configuration: ConfigurationSchema,
  acp: AcpAgentsSchema,
  mcp: s.array(McpServerSchema),
  maintenance: s.closed({
    mode: s.choice(["warn", "enforce"]),
    decisions: s.array(MaintenanceDecisionSchema),
    explained: s.optional(ExplainedSchema),
  }),
});
export type DoctorPayload = s.Static<typeof DoctorSchema>;
