import type { Static } from "typebox";
import Type from "typebox";
import type { Entry, OpaqueEntry } from "../core/entries.ts";
import { closed, count, nullable, time } from "./fields.ts";
import { IndexingSchema, SessionRowSchema } from "./session-list.ts";

/** What methods that look closer at sessions answer. What is not known is absent. */

const named = { key: Type.String(), sessionId: Type.String() };
const optionalText = Type.Optional(Type.String());

/** `sessions.get`: the row of lists, with what a page about one session shows beside its messages. */
export const SessionDetailsSchema = Type.Object(
  {
    ...SessionRowSchema.properties,
    agentId: Type.String(),
    /** For `ifVersion`. */
    version: Type.Integer(),
    createdAt: time,
    archived: Type.Optional(Type.Boolean()),
    sandboxed: Type.Optional(Type.Boolean()),
    leafId: optionalText,
    compactions: count,
    /** The run that is running, waiting, asleep or next. */
    runId: optionalText,
    /** Input that waits for a turn of its own. */
    queued: Type.Optional(count),
  },
  closed,
);
export type SessionDetailsPayload = Static<typeof SessionDetailsSchema>;

/** `sessions.resolve`. The `uid` stays with the session, whatever happens to its key. */
export const ResolvedSchema = Type.Object({ ...named, uid: Type.String() }, closed);

/** `sessions.preview`: one for each key, in the order asked; one that fails does not fail the others. */
export const PreviewsSchema = Type.Object(
  {
    previews: Type.Array(
      Type.Object(
        {
          /** As it was asked. */
          key: Type.String(),
          status: Type.Enum(["ok", "empty", "missing", "error"]),
          /** Oldest first. */
          items: Type.Array(
            Type.Object({ id: Type.String(), role: Type.String(), text: Type.String() }, closed),
          ),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type PreviewsPayload = Static<typeof PreviewsSchema>;

/** An entry as its line has it. Fields and types that nobody here knows are kept, and are invisible in the types. */
export const WireEntrySchema = Type.Unsafe<Exclude<Entry, OpaqueEntry>>(
  Type.Object({
    type: Type.String(),
    id: Type.String(),
    parentId: nullable(Type.String()),
    timestamp: Type.String(),
  }),
);
export type WireEntry = Static<typeof WireEntrySchema>;

/** `sessions.entries`: a page of what the session holds, oldest first, whole. */
export const EntriesSchema = Type.Object(
  {
    ...named,
    /** Where it stood when the page was read. */
    leafId: nullable(Type.String()),
    entries: Type.Array(WireEntrySchema),
    hasEarlier: Type.Boolean(),
    hasLater: Type.Boolean(),
    /** Secrets were masked, which an admin's are not. */
    redacted: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type EntriesPayload = Static<typeof EntriesSchema>;

const figures = {
  /** Answers of models. */
  answers: count,
  input: count,
  output: count,
  cacheRead: count,
  cacheWrite: count,
  totalTokens: count,
  /** Of what has a known price. */
  costUsd: Type.Number({ minimum: 0 }),
  /** Tokens whose price is not known, and which `costUsd` leaves out. */
  unpricedTokens: count,
};

/** `sessions.usage`: a row for each combination of what was asked for that anything was spent under. */
export const UsageReportSchema = Type.Object(
  {
    since: time,
    until: time,
    /** Biggest first; with `day` the earliest day first. */
    rows: Type.Array(
      Type.Object(
        {
          /** `YYYY-MM-DD` in the time zone that was asked for. */
          day: optionalText,
          model: optionalText,
          agentId: optionalText,
          ...figures,
        },
        closed,
      ),
    ),
    total: Type.Object(figures, closed),
    indexing: Type.Optional(IndexingSchema),
  },
  closed,
);
export type UsageReportPayload = Static<typeof UsageReportSchema>;

/** `blobs.get`: a piece of it, base64. */
export const BlobSchema = Type.Object(
  {
    sha256: Type.String(),
    /** Of the whole. */
    bytes: count,
    offset: count,
    data: Type.String(),
    /** Absent: this was the last piece. */
    nextOffset: Type.Optional(count),
  },
  closed,
);
