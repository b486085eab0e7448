import type { Entry, OpaqueEntry } from "../core/entries.ts";
import * as s from "../core/schema.ts";
import {
  branchPage,
  count,
  everyUser,
  exactlyOne,
  label,
  limit,
  oneSession,
  reader,
  reference,
  sessionId,
  time,
} from "./fields.ts";
import { method } from "./method.ts";
import { IndexingSchema, SessionRowSchema } from "./session-list.ts";
import { branchLeafId } from "./session-views.ts";

/** Methods that read one session. Unknown values are absent. */

const named = { key: s.string(), sessionId: s.string() };
const optionalText = s.optional(s.string());

/** `sessions.get`: the same fields as in lists, plus further details. */
export const SessionDetailsSchema = s.closed({
  ...SessionRowSchema.properties,
  agentId: s.string(),
  /** The version to pass as `ifVersion`. */
  version: s.integer(),
  createdAt: time,
  archived: s.optional(s.boolean()),
  sandboxed: s.optional(s.boolean()),
  leafId: optionalText,
  compactions: count,
  /** The active run (running, waiting or sleeping) or, if there is none, the next run. */
  runId: optionalText,
  /** The number of queued inputs. */
  queued: s.optional(count),
});
export type SessionDetailsPayload = s.Static<typeof SessionDetailsSchema>;

/** `sessions.resolve`. The `uid` never changes, even if the key does. */
export const ResolvedSchema = s.closed({ ...named, uid: s.string() });

/**
 * `sessions.preview`: one preview per key, in the order of the request. A failed preview does not affect the others.
 */
export const PreviewsSchema = s.closed({
  previews: s.array(
    s.closed({
      /** The key as given in the request. */
      key: s.string(),
      status: s.choice(["ok", "empty", "missing", "error"]),
      /** Oldest first. */
      items: s.array(s.closed({ id: s.string(), role: s.string(), text: s.string() })),
    }),
  ),
});
export type PreviewsPayload = s.Static<typeof PreviewsSchema>;

/**
 * An entry as it appears in the session file. Unknown fields and types are kept, but are not part of the TypeScript
 * type.
 */
export const WireEntrySchema = s.object({
  type: s.string(),
  id: s.string(),
  parentId: s.nullable(s.string()),
  timestamp: s.string(),
}) as s.Schema<Exclude<Entry, OpaqueEntry>>;
export type WireEntry = s.Static<typeof WireEntrySchema>;

/** `sessions.entries`: a page of complete entries in the session, oldest first. */
export const EntriesSchema = s.closed({
  ...named,
  /** The leaf when the page was read. */
  leafId: s.nullable(s.string()),
  branchLeafId,
  entries: s.array(WireEntrySchema),
  hasEarlier: s.boolean(),
  hasLater: s.boolean(),
  /** `true` if secrets were masked because the caller is not an admin. */
  redacted: s.optional(s.boolean()),
});
export type EntriesPayload = s.Static<typeof EntriesSchema>;

const figures = {
  /** The number of model responses. */
  answers: count,
  input: count,
  output: count,
  cacheRead: count,
  cacheWrite: count,
  totalTokens: count,
  /** The cost of the tokens whose price is known. */
  costUsd: s.number({ minimum: 0 }),
  /** Tokens with an unknown price, which `costUsd` does not include. */
  unpricedTokens: count,
};

/** `sessions.usage`: one row for each combination of groups with any usage. */
export const UsageReportSchema = s.closed({
  since: time,
  until: time,
  /**
   * Largest first, or earliest first when grouped by `day`. The rows add up to the total. There are at most 5,000 rows.
   * Beyond that, the smallest rows are combined into a row without groups.
   */
  rows: s.array(
    s.closed({
      /** `YYYY-MM-DD` in the requested time zone. */
      day: optionalText,
      model: optionalText,
      agentId: optionalText,
      /** Also set in rows that are grouped by session. Absent for the unnamed user. */
      userId: optionalText,
      sessionKey: optionalText,
      ...figures,
    }),
  ),
  total: s.closed(figures),
  indexing: s.optional(IndexingSchema),
});
export type UsageReportPayload = s.Static<typeof UsageReportSchema>;

/** `blobs.get`: a chunk of a blob, base64-encoded. */
export const BlobSchema = s.closed({
  sha256: s.string(),
  /** The size of the whole blob. */
  bytes: count,
  offset: count,
  data: s.string(),
  /** The offset of the next chunk. Absent in the last chunk. */
  nextOffset: s.optional(count),
});

export const sessionsGet = method({
  scope: "read",
  about: "Returns everything about a session except its entries.",
  params: s.closed(oneSession),
  result: SessionDetailsSchema,
  isIdempotent: true,
});

/** With `prefix`, a unique prefix of a session ID is accepted, so people do not have to type whole IDs. */
export const sessionsResolve = method({
  scope: "read",
  about: "Finds a session by key, session ID or label.",
  params: s.closed(
    {
      key: s.optional(reference),
      sessionId: s.optional(sessionId),
      label: s.optional(label),
      spawnedBy: s.optional(reference),
      prefix: s.optional(s.boolean()),
      ...reader,
    },
    exactlyOne("key", "sessionId", "label"),
  ),
  result: ResolvedSchema,
  isIdempotent: true,
});

/**
 * Returns the last messages of many sessions in one call, for lists. Tool messages are omitted, and each message is a
 * single line.
 */
export const sessionsPreview = method({
  scope: "read",
  about: "Returns the last messages of several sessions, in shortened form.",
  params: s.closed({
    keys: s.array(reference, { minItems: 1, maxItems: 64 }),
    limit: limit(50, 12),
    maxChars: s.optional(s.integer({ minimum: 20, maximum: 2000, default: 240 })),
    ...reader,
  }),
  result: PreviewsSchema,
  isIdempotent: true,
});

/**
 * Returns complete entries, for clients that draw or compare branches. Use `chat.history` to display a conversation.
 */
export const sessionsEntries = method({
  scope: "read",
  about:
    "Returns a page of a session's entries along the active branch, along a different branch, or in log order.",
  params: s.closed({
    ...oneSession,
    along: s.optional(s.choice(["branch", "all"], { default: "branch" })),
    ...branchPage,
    limit: limit(1000, 200),
  }),
  result: EntriesSchema,
  isIdempotent: true,
});

/** Returns one table, grouped as requested. Without `by`, returns only the total. */
export const sessionsUsage = method({
  scope: "read",
  about: "Returns tokens and cost by day, model, agent, user and session.",
  params: s.closed({
    since: s.optional(time),
    until: s.optional(time),
    by: s.optional(
      s.array(s.choice(["day", "model", "agent", "user", "session"]), { maxItems: 5, uniqueItems: true }),
    ),
    /** The IANA time zone that determines when a day starts. Defaults to the gateway's time zone. */
    timeZone: s.optional(s.string({ minLength: 1, maxLength: 64 })),
    key: s.optional(reference),
    ...reader,
    ...everyUser,
  }),
  result: UsageReportSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

const longestPiece = 8 * 1024 * 1024;

/**
 * Requires a session because blobs are stored per user and agent. Returns chunks because a blob can be larger than a
 * frame.
 */
export const blobsGet = method({
  scope: "read",
  about: "Returns a blob by its hash, or one chunk of it.",
  params: s.closed({
    ...oneSession,
    sha256: s.string({ maxLength: 64, pattern: "^[0-9a-f]{64}$" }),
    offset: s.optional(s.integer({ minimum: 0, default: 0 })),
    length: s.optional(s.integer({ minimum: 1, maximum: longestPiece, default: longestPiece })),
  }),
  result: BlobSchema,
  isIdempotent: true,
});
