import type { Static } from "typebox";
import Type from "typebox";
import { IndexingSchema } from "./session-list.ts";

/** What looking after a folder answers. */

const strict = { additionalProperties: false };

const LeftOutSchema = Type.Object({ what: Type.String(), instead: Type.String() }, strict);

const copied = {
  folder: Type.String(),
  files: Type.Integer(),
  bytes: Type.Integer(),
  /** The configuration file that was copied, by its name in the folder; left out: there was none. */
  configuration: Type.Optional(Type.String()),
  /** What is not in it, and what to do about that. */
  leftOut: Type.Array(LeftOutSchema),
};

/** `users.list`, `users ls`: in the order of their IDs. */
export const UserListSchema = Type.Object(
  {
    count: Type.Integer(),
    users: Type.Array(
      Type.Object(
        {
          /** Absent: the unnamed user. */
          userId: Type.Optional(Type.String()),
          /** The folders of the sessions, where a program named a namespace; absent: those of the user. */
          namespace: Type.Optional(Type.Array(Type.String())),
          /** The name of the store in `createSkein({ stores })`; absent: the folder's own. */
          store: Type.Optional(Type.String()),
          /** Those in the trash are left out. */
          sessions: Type.Integer(),
          runs: Type.Integer(),
          openRuns: Type.Integer(),
          /** Spent in its sessions. */
          totalTokens: Type.Integer(),
          /** Valid tokens of the gateway for this user alone. */
          accessTokens: Type.Integer(),
          /** Of the logs of its sessions. */
          bytes: Type.Integer(),
          /** When something was last said in a session; absent: there is none. */
          lastActiveAt: Type.Optional(Type.Integer()),
        },
        strict,
      ),
    ),
    nextCursor: Type.Optional(Type.String()),
    indexing: Type.Optional(IndexingSchema),
  },
  strict,
);
export type UserListPayload = Static<typeof UserListSchema>;
export type UserRow = UserListPayload["users"][number];

/** `backup`. */
export const BackupSchema = Type.Object(copied, strict);
export type BackupPayload = Static<typeof BackupSchema>;

/** `restore`. */
export const RestoreSchema = Type.Object(
  {
    ...copied,
    createdAt: Type.String(),
    /** What `store` of the configuration says now; absent: the configuration sets none. */
    store: Type.Optional(Type.String()),
  },
  strict,
);
export type RestorePayload = Static<typeof RestoreSchema>;

/** Something that a look at the files found. */
export const FindingSchema = Type.Object(
  {
    area: Type.String(),
    severity: Type.Enum(["note", "warning", "error"]),
    file: Type.String(),
    what: Type.String(),
    remedy: Type.String(),
    fixable: Type.Boolean(),
    fixed: Type.Boolean(),
  },
  strict,
);
export type FindingPayload = Static<typeof FindingSchema>;

/** What maintenance would do to a session, and why. */
export const MaintenanceDecisionSchema = Type.Object(
  {
    userId: Type.Optional(Type.String()),
    key: Type.String(),
    sessionId: Type.String(),
    action: Type.Enum(["archive", "trash", "purge"]),
    rule: Type.String(),
    why: Type.String(),
  },
  strict,
);
export type MaintenanceDecisionPayload = Static<typeof MaintenanceDecisionSchema>;

/** What maintenance means for one session: `now: …`, and a line for each rule. */
const ExplainedSchema = Type.Object(
  { key: Type.String(), sessionId: Type.String(), lines: Type.Array(Type.String()) },
  strict,
);

/** `maintenance.run`: what the rules come to, and what was done: nothing where they only warn, or it was a rehearsal. */
export const MaintenanceReportSchema = Type.Object(
  {
    mode: Type.Enum(["warn", "enforce"]),
    decisions: Type.Array(MaintenanceDecisionSchema),
    done: Type.Array(MaintenanceDecisionSchema),
    explained: Type.Optional(ExplainedSchema),
  },
  strict,
);
export type MaintenanceReportPayload = Static<typeof MaintenanceReportSchema>;

/** `config.get`: the configuration that holds. */
export const ConfigurationSchema = Type.Object(
  {
    file: Type.Optional(Type.String()),
    problems: Type.Array(Type.String()),
    /** YAML, with where each value comes from behind it, and without secrets. */
    effective: Type.String(),
    /** MCP servers and ACP agents, by path, whose new command waits for `skein reload` or a restart. */
    waiting: Type.Optional(Type.Array(Type.String())),
  },
  strict,
);
export type ConfigurationPayload = Static<typeof ConfigurationSchema>;

/** `config.reload`. */
export const ReloadSchema = Type.Object(
  {
    file: Type.Optional(Type.String()),
    /** MCP servers and ACP agents, by path, whose new or changed command is in effect from now on. */
    commands: Type.Array(Type.String()),
    /** Settings that changed and keep their old values until a restart. */
    restartNeeded: Type.Array(Type.String()),
  },
  strict,
);
export type ReloadPayload = Static<typeof ReloadSchema>;

/** A configured ACP agent as it was found: whether it is there, and what it says of itself. */
export const AcpAgentSchema = Type.Object(
  {
    name: Type.String(),
    command: Type.String(),
    /** The file that is started; left out: there is none. */
    file: Type.Optional(Type.String()),
    isAllowed: Type.Boolean(),
    isDefault: Type.Boolean(),
    answers: Type.Boolean(),
    /** Why it does not answer. */
    problem: Type.Optional(Type.String()),
    /** Of one that is not there: how it is installed, where that is known. */
    install: Type.Optional(Type.String()),
    title: Type.Optional(Type.String()),
    version: Type.Optional(Type.String()),
    protocolVersion: Type.Optional(Type.Integer()),
    /** What it can do with sessions beside beginning one. */
    can: Type.Optional(
      Type.Object(
        { load: Type.Boolean(), resume: Type.Boolean(), fork: Type.Boolean(), list: Type.Boolean() },
        strict,
      ),
    ),
    authMethods: Type.Optional(Type.Array(Type.String())),
  },
  strict,
);
export type AcpAgentPayload = Static<typeof AcpAgentSchema>;

/** The ACP agents of a configuration, and well-known ones that are here and that nobody has configured. */
export const AcpAgentsSchema = Type.Object(
  {
    agents: Type.Array(AcpAgentSchema),
    others: Type.Array(
      Type.Object({ name: Type.String(), title: Type.String(), file: Type.String() }, strict),
    ),
  },
  strict,
);
export type AcpAgentsPayload = Static<typeof AcpAgentsSchema>;

export const McpServerSchema = Type.Object(
  {
    name: Type.String(),
    answers: Type.Boolean(),
    /** How many tools it offers. */
    tools: Type.Optional(Type.Integer()),
    /** Why it does not answer. */
    problem: Type.Optional(Type.String()),
  },
  strict,
);
export type McpServerPayload = Static<typeof McpServerSchema>;

/** `doctor`. */
export const DoctorSchema = Type.Object(
  {
    /** No error remains. */
    ok: Type.Boolean(),
    node: Type.Object({ version: Type.String(), needed: Type.String(), ok: Type.Boolean() }, strict),
    folder: Type.Object({ path: Type.String(), from: Type.String(), exists: Type.Boolean() }, strict),
    findings: Type.Array(FindingSchema),
    configuration: ConfigurationSchema,
    acp: AcpAgentsSchema,
    mcp: Type.Array(McpServerSchema),
    maintenance: Type.Object(
      {
        mode: Type.Enum(["warn", "enforce"]),
        decisions: Type.Array(MaintenanceDecisionSchema),
        explained: Type.Optional(ExplainedSchema),
      },
      strict,
    ),
  },
  strict,
);
export type DoctorPayload = Static<typeof DoctorSchema>;
