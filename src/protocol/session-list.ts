import type { Static } from "typebox";
import Type from "typebox";

/** What lists of sessions hold. Absent fields are not known, or are not so; nothing is `null`. */

export const KindSchema = Type.Enum(["main", "group", "cron", "hook", "node", "other"]);

const strict = { additionalProperties: false };

/** One session in a list. The key is canonical; what runs concerns is absent where nothing has run. */
export const SessionRowSchema = Type.Object(
  {
    key: Type.String(),
    kind: KindSchema,
    /** `internal` for cron, hook and node; `unknown` where neither session nor key names one. */
    channel: Type.String(),
    label: Type.Optional(Type.String()),
    displayName: Type.Optional(Type.String()),
    deliveryContext: Type.Optional(
      Type.Object(
        {
          channel: Type.String(),
          to: Type.Optional(Type.String()),
          accountId: Type.Optional(Type.String()),
        },
        strict,
      ),
    ),
    /** When the last conversation entry was appended; metadata does not count. */
    updatedAt: Type.Integer(),
    sessionId: Type.String(),
    model: Type.Optional(Type.String()),
    /** In the context now. */
    contextTokens: Type.Optional(Type.Integer()),
    /** Spent under this session id. */
    totalTokens: Type.Optional(Type.Integer()),
    /** Absent where a price is not known. */
    estimatedCostUsd: Type.Optional(Type.Number()),
    status: Type.Optional(Type.Enum(["idle", "queued", "running", "waiting", "error", "timeout", "aborted"])),
    startedAt: Type.Optional(Type.Integer()),
    endedAt: Type.Optional(Type.Integer()),
    runtimeMs: Type.Optional(Type.Integer()),
    childSessions: Type.Optional(Type.Array(Type.String())),
    spawnedBy: Type.Optional(Type.String()),
    thinkingLevel: Type.Optional(Type.String()),
    verboseLevel: Type.Optional(Type.Enum(["off", "on", "full"])),
    systemSent: Type.Optional(Type.Boolean()),
    abortedLastRun: Type.Optional(Type.Boolean()),
    sendPolicy: Type.Optional(Type.Enum(["allow", "deny"])),
    lastChannel: Type.Optional(Type.String()),
    lastTo: Type.Optional(Type.String()),
    lastAccountId: Type.Optional(Type.String()),
    userId: Type.Optional(Type.String()),
    /** Of its lines. */
    bytes: Type.Optional(Type.Integer()),
    /** The working set. */
    transcriptPath: Type.Optional(Type.String()),
    /** For admins: a path of the gateway's machine. */
    cwd: Type.Optional(Type.String()),
    /** The last compaction's goal, else how it began. */
    summary: Type.Optional(Type.String()),
  },
  strict,
);
export type SessionRow = Static<typeof SessionRowSchema>;

/** The answer is behind for so many sessions. */
export const IndexingSchema = Type.Object({ behind: Type.Integer() }, strict);

/** `sessions.list`, `sessions ls`. */
export const SessionListSchema = Type.Object(
  {
    count: Type.Integer(),
    sessions: Type.Array(SessionRowSchema),
    nextCursor: Type.Optional(Type.String()),
    indexing: Type.Optional(IndexingSchema),
    /** The folder. */
    path: Type.Optional(Type.String()),
  },
  strict,
);
export type SessionListPayload = Static<typeof SessionListSchema>;

/** `sessions.trash`, `sessions ls --trash`: the last removed first. */
export const TrashListSchema = Type.Object(
  {
    count: Type.Integer(),
    sessions: Type.Array(
      Type.Object(
        {
          key: Type.String(),
          kind: KindSchema,
          sessionId: Type.String(),
          label: Type.Optional(Type.String()),
          removedAt: Type.Integer(),
          bytes: Type.Integer(),
          userId: Type.Optional(Type.String()),
        },
        strict,
      ),
    ),
    path: Type.Optional(Type.String()),
  },
  strict,
);
export type TrashListPayload = Static<typeof TrashListSchema>;
export type TrashRow = TrashListPayload["sessions"][number];

/** `sessions.search`, `sessions search`: best first. */
export const SearchSchema = Type.Object(
  {
    count: Type.Integer(),
    hits: Type.Array(
      Type.Object(
        {
          key: Type.String(),
          sessionId: Type.String(),
          entryId: Type.String(),
          role: Type.String(),
          time: Type.Integer(),
          snippet: Type.String(),
        },
        strict,
      ),
    ),
    indexing: Type.Optional(IndexingSchema),
  },
  strict,
);
export type SearchPayload = Static<typeof SearchSchema>;
