import * as s from "../core/schema.ts";
import { agentId, everyUser, few, kind, label, limit, reader, reference, time, user } from "./fields.ts";
import { method } from "./method.ts";

/** Methods that list sessions. Fields that are unknown or `false` are absent. No field is `null`. */

export const KindSchema = s.choice(["main", "group", "cron", "hook", "node", "other"]);

export const StatusSchema = s.choice(["idle", "queued", "running", "waiting", "error", "timeout", "aborted"]);

/**
 * The attention that a session needs from people. `needs_you` means that a tool call is waiting for approval. `working`
 * means that a run has not ended. `failed` means that the last run failed or timed out. `done` covers everything else.
 */
export const SessionStateSchema = s.choice(["needs_you", "working", "failed", "done"]);
export type SessionState = s.Static<typeof SessionStateSchema>;

/** A session in a list. The key is canonical. Fields about runs are absent if the session has never had a run. */
export const SessionRowSchema = s.closed({
  key: s.string(),
  kind: KindSchema,
  /** `internal` for cron, hook and node sessions. `unknown` if neither the session nor its key has a channel. */
  channel: s.string(),
  label: s.optional(s.string()),
  displayName: s.optional(s.string()),
  deliveryContext: s.optional(
    s.closed({
      channel: s.string(),
      to: s.optional(s.string()),
      accountId: s.optional(s.string()),
    }),
  ),
  /** When the last conversation entry was appended. Metadata entries are ignored. */
  updatedAt: s.integer(),
  sessionId: s.string(),
  model: s.optional(s.string()),
  /** Tokens currently in the context. */
  contextTokens: s.optional(s.integer()),
  /** Tokens used under this session ID. */
  totalTokens: s.optional(s.integer()),
  /** Absent if a price is unknown. */
  estimatedCostUsd: s.optional(s.number()),
  status: s.optional(StatusSchema),
  state: s.optional(SessionStateSchema),
  startedAt: s.optional(s.integer()),
  endedAt: s.optional(s.integer()),
  runtimeMs: s.optional(s.integer()),
  childSessions: s.optional(s.array(s.string())),
  spawnedBy: s.optional(s.string()),
  thinkingLevel: s.optional(s.string()),
  verboseLevel: s.optional(s.choice(["off", "on", "full"])),
  systemSent: s.optional(s.boolean()),
  abortedLastRun: s.optional(s.boolean()),
  sendPolicy: s.optional(s.choice(["allow", "deny"])),
  lastChannel: s.optional(s.string()),
  lastTo: s.optional(s.string()),
  lastAccountId: s.optional(s.string()),
  userId: s.optional(s.string()),
  /** The size of the session's log. */
  bytes: s.optional(s.integer()),
  /** The path of the working set. */
  transcriptPath: s.optional(s.string()),
  /** A path on the gateway's machine. Returned only to admins. */
  cwd: s.optional(s.string()),
  /** The goal from the last compaction or, if there is none, the beginning of the session. */
  summary: s.optional(s.string()),
});
export type SessionRow = s.Static<typeof SessionRowSchema>;

/** The number of sessions that are not indexed yet. */
export const IndexingSchema = s.closed({ behind: s.integer() });

/** `sessions.list`, `sessions ls`. */
export const SessionListSchema = s.closed({
  count: s.integer(),
  sessions: s.array(SessionRowSchema),
  /** The number of matching sessions across all pages. Set only if it was requested. */
  total: s.optional(s.integer()),
  nextCursor: s.optional(s.string()),
  indexing: s.optional(IndexingSchema),
  /** The root folder. */
  path: s.optional(s.string()),
});
export type SessionListPayload = s.Static<typeof SessionListSchema>;

/** `sessions.trash`, `sessions ls --trash`: most recently removed first. */
export const TrashListSchema = s.closed({
  count: s.integer(),
  sessions: s.array(
    s.closed({
      key: s.string(),
      kind: KindSchema,
      sessionId: s.string(),
      label: s.optional(s.string()),
      removedAt: s.integer(),
      bytes: s.integer(),
      userId: s.optional(s.string()),
    }),
  ),
  path: s.optional(s.string()),
});
export type TrashListPayload = s.Static<typeof TrashListSchema>;
export type TrashRow = TrashListPayload["sessions"][number];

/** `sessions.search`, `sessions search`: best match first. */
export const SearchSchema = s.closed({
  count: s.integer(),
  hits: s.array(
    s.closed({
      key: s.string(),
      sessionId: s.string(),
      entryId: s.string(),
      role: s.string(),
      time: s.integer(),
      snippet: s.string(),
      /** The start and end of each query word in the snippet. */
      ranges: s.array(s.array(s.integer())),
      /** `false` if the entry is on an inactive branch. */
      active: s.boolean(),
    }),
  ),
  nextCursor: s.optional(s.string()),
  indexing: s.optional(IndexingSchema),
});
export type SearchPayload = s.Static<typeof SearchSchema>;

const words = s.string({ minLength: 1, maxLength: 1000 });

export const sessionsList = method({
  scope: "read",
  about: "Lists sessions from the index, by default most recently active first.",
  params: s.closed({
    limit: limit(1000, 100),
    cursor: s.optional(s.string({ minLength: 1, maxLength: 1000 })),
    activeMinutes: s.optional(s.integer({ minimum: 1, maximum: 5_256_000 })),
    includeGlobal: s.optional(s.boolean()),
    includeUnknown: s.optional(s.boolean()),
    /**
     * Returns exactly these sessions, archived or not, given as any kind of reference. Sessions that do not exist are
     * omitted.
     */
    keys: s.optional(few(reference, 100)),
    spawnedBy: s.optional(reference),
    agentId: s.optional(agentId),
    kinds: s.optional(few(kind, 6)),
    channels: s.optional(few(s.string({ minLength: 1, maxLength: 64 }), 32)),
    states: s.optional(few(SessionStateSchema, 4)),
    sort: s.optional(s.choice(["updated", "created", "tokens", "cost", "name"])),
    label: s.optional(label),
    search: s.optional(words),
    archived: s.optional(s.boolean()),
    /** Adds each session's summary and, for admins, its working directory. */
    includeDetails: s.optional(s.boolean()),
    /** Adds `total`. The more sessions there are, the longer counting takes. */
    total: s.optional(s.boolean()),
    ...user,
    ...everyUser,
  }),
  result: SessionListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

/** For clients that restore or purge sessions. */
export const sessionsTrash = method({
  scope: "read",
  about: "Lists the sessions in the trash, most recently removed first.",
  params: s.closed({ agentId: s.optional(agentId), ...user }),
  result: TrashListSchema,
  isIdempotent: true,
});

export const sessionsSearch = method({
  scope: "read",
  about:
    "Searches the full text of sessions, including all branches and tool results. Best matches come first.",
  params: s.closed({
    query: words,
    key: s.optional(reference),
    role: s.optional(s.string({ minLength: 1, maxLength: 64 })),
    since: s.optional(time),
    until: s.optional(time),
    limit: limit(50, 10),
    /** Returns only the best hit of each session. */
    bySession: s.optional(s.boolean()),
    /** `nextCursor` from the previous page of the same search. */
    cursor: s.optional(s.string({ maxLength: 64, pattern: "^\\d{1,4}\\.\\d{1,16}$" })),
    ...reader,
  }),
  result: SearchSchema,
  isIdempotent: true,
});
