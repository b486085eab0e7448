import * as s from "../core/schema.ts";
import { ConfigurationSchema, ExplainedSchema, MaintenanceDecisionSchema } from "./upkeep.ts";

/** `init`. Of keys there are the names of their variables alone. */
export const InitSchema = s.closed({
  /** What was written. */
  file: s.string(),
  /** Where the files that were there before are now. */
  backups: s.array(s.string()),
  /** The model that agent `main` has. */
  model: s.string(),
  keys: s.array(
    s.closed({ provider: s.string(), variable: s.string(), from: s.choice(["environment", ".env"]) }),
  ),
  /** Absent: none answered. */
  ollama: s.optional(s.closed({ baseUrl: s.string(), models: s.array(s.string()) })),
  /** What to do next, a sentence each. */
  next: s.array(s.string()),
});
export type InitPayload = s.Static<typeof InitSchema>;

/** `start`: the gateway of the folder, whether this start opened it or an earlier one. */
export const StartSchema = s.closed({
  url: s.string(),
  /** For a page: good once, and for ten minutes. */
  link: s.string(),
  pid: s.integer(),
  /** In milliseconds since 1970. */
  startedAt: s.integer(),
  /** It ran before. */
  wasRunning: s.boolean(),
});
export type StartPayload = s.Static<typeof StartSchema>;

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
