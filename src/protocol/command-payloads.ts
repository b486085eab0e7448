import * as s from "../core/schema.ts";
import { ConfigurationSchema, ExplainedSchema, MaintenanceDecisionSchema } from "./upkeep.ts";

/** `init`. API keys appear only as the names of their variables. */
export const InitSchema = s.closed({
  /** The path of the written configuration file. */
  file: s.string(),
  /** The folder that the previous files were moved to. */
  backups: s.array(s.string()),
  /** The model for the agent `main`. */
  model: s.string(),
  keys: s.array(
    s.closed({ provider: s.string(), variable: s.string(), from: s.choice(["environment", ".env"]) }),
  ),
  /** Absent if no server responded. */
  ollama: s.optional(s.closed({ baseUrl: s.string(), models: s.array(s.string()) })),
  /** The next steps, one sentence each. */
  next: s.array(s.string()),
});
export type InitPayload = s.Static<typeof InitSchema>;

/** `start`: the folder's gateway, whether this command or an earlier one started it. */
export const StartSchema = s.closed({
  url: s.string(),
  /** A link that opens the console. It can be used once and expires after ten minutes. Absent with `--workers-only`. */
  link: s.optional(s.string()),
  pid: s.integer(),
  /** In milliseconds since 1970. */
  startedAt: s.integer(),
  /** Whether the gateway was already running. */
  wasRunning: s.boolean(),
});
export type StartPayload = s.Static<typeof StartSchema>;

/** Payloads for commands that maintain a root folder. */

const LeftOutSchema = s.closed({ what: s.string(), instead: s.string() });

const copied = {
  folder: s.string(),
  files: s.integer(),
  bytes: s.integer(),
  /** The name of the copied configuration file in the folder. Absent if there was none. */
  configuration: s.optional(s.string()),
  /** Items that the backup does not contain, and what to do about each. */
  leftOut: s.array(LeftOutSchema),
};

/** `backup`. */
export const BackupSchema = s.closed(copied);
export type BackupPayload = s.Static<typeof BackupSchema>;

/** `restore`. */
export const RestoreSchema = s.closed({
  ...copied,
  createdAt: s.string(),
  /** The value of `store` in the configuration. Absent if it is not set. */
  store: s.optional(s.string()),
});
export type RestorePayload = s.Static<typeof RestoreSchema>;

/** `store migrate`. Addresses do not contain passwords. */
export const StoreMigrateSchema = s.closed({
  from: s.string(),
  to: s.string(),
  sessions: s.integer(),
  entries: s.integer(),
  blobs: s.integer(),
  /** The number of rows by table: runs, tokens, messages to channels, and more. */
  rows: s.record(s.integer()),
  /** Sessions that were copied without their damaged lines, and the number of lines left out of each. */
  skipped: s.array(s.closed({ key: s.string(), lines: s.integer() })),
  /** Sessions that refer to images or large outputs that the source does not have, and how many each session lacks. */
  missing: s.array(s.closed({ key: s.string(), blobs: s.integer() })),
  /** Whether the command continued an earlier attempt. */
  resumed: s.boolean(),
  /** The command that starts a gateway on the new store. */
  next: s.string(),
});
export type StoreMigratePayload = s.Static<typeof StoreMigrateSchema>;

/** A problem found while checking the files. */
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

/** A configured ACP agent: whether it is installed and responding, and how it identifies itself. */
export const AcpAgentSchema = s.closed({
  name: s.string(),
  command: s.string(),
  /** The executable. Absent if it was not found. */
  file: s.optional(s.string()),
  isAllowed: s.boolean(),
  isDefault: s.boolean(),
  answers: s.boolean(),
  /** The error if the agent does not respond. */
  problem: s.optional(s.string()),
  /** How to install an agent that was not found, if known. */
  install: s.optional(s.string()),
  title: s.optional(s.string()),
  version: s.optional(s.string()),
  protocolVersion: s.optional(s.integer()),
  /** The session capabilities that the agent supports in addition to starting a session. */
  can: s.optional(s.closed({ load: s.boolean(), resume: s.boolean(), fork: s.boolean(), list: s.boolean() })),
  authMethods: s.optional(s.array(s.string())),
});
export type AcpAgentPayload = s.Static<typeof AcpAgentSchema>;

/** The configured ACP agents, and well-known ones that are installed but not configured. */
export const AcpAgentsSchema = s.closed({
  agents: s.array(AcpAgentSchema),
  others: s.array(s.closed({ name: s.string(), title: s.string(), file: s.string() })),
});
export type AcpAgentsPayload = s.Static<typeof AcpAgentsSchema>;

export const McpServerSchema = s.closed({
  name: s.string(),
  answers: s.boolean(),
  /** The number of tools that the server offers. */
  tools: s.optional(s.integer()),
  /** The error if the server does not respond. */
  problem: s.optional(s.string()),
});
export type McpServerPayload = s.Static<typeof McpServerSchema>;

/** A configured chat channel. `packages` is empty if a package is missing or has an unsupported version. */
export const ChatChannelSchema = s.closed({
  name: s.string(),
  platform: s.string(),
  packages: s.array(s.closed({ name: s.string(), version: s.string() })),
  /** What is wrong with the packages. */
  problem: s.optional(s.string()),
  /** The command that installs the packages. */
  remedy: s.optional(s.string()),
});
export type ChatChannelPayload = s.Static<typeof ChatChannelSchema>;

/** `doctor`. */
export const DoctorSchema = s.closed({
  /** `true` if no error remains. */
  ok: s.boolean(),
  node: s.closed({ version: s.string(), needed: s.string(), ok: s.boolean() }),
  folder: s.closed({ path: s.string(), from: s.string(), exists: s.boolean() }),
  /** The host and the name of the database, if sessions are stored in one. */
  database: s.optional(s.string()),
  findings: s.array(FindingSchema),
  configuration: ConfigurationSchema,
  acp: AcpAgentsSchema,
  mcp: s.array(McpServerSchema),
  channels: s.array(ChatChannelSchema),
  maintenance: s.closed({
    mode: s.choice(["warn", "enforce"]),
    decisions: s.array(MaintenanceDecisionSchema),
    explained: s.optional(ExplainedSchema),
  }),
});
export type DoctorPayload = s.Static<typeof DoctorSchema>;
