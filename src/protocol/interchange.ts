import * as s from "../core/schema.ts";

/** Sessions in from elsewhere, and out to be read. */

export const NotKeptSchema = s.closed({
  what: s.string(),
  count: s.integer(),
  example: s.optional(s.string()),
});

/** `sessions.import`, `sessions import`. */
export const ImportSchema = s.closed({
  imported: s.array(
    s.closed({
      key: s.string(),
      sessionId: s.string(),
      file: s.string(),
      entries: s.integer(),
      notKept: s.array(NotKeptSchema),
    }),
  ),
  failed: s.array(s.closed({ file: s.string(), code: s.string(), error: s.string() })),
  /** Imported before, and left as they are; absent when there are none. */
  skipped: s.optional(
    s.array(s.closed({ key: s.string(), sessionId: s.string(), file: s.string(), why: s.string() })),
  ),
  /** Files of other programs than `from` names; absent when there are none. */
  ignored: s.optional(s.array(s.closed({ file: s.string(), why: s.string() }))),
});
export type ImportPayload = s.Static<typeof ImportSchema>;
export type ImportedRow = ImportPayload["imported"][number];
export type FailedRow = ImportPayload["failed"][number];
export type IgnoredRow = NonNullable<ImportPayload["ignored"]>[number];
export type SkippedRow = NonNullable<ImportPayload["skipped"]>[number];

/** `sessions.export`, `sessions export`: the text itself, or where it was written. */
export const ExportSchema = s.closed({
  /** Absent for a lone file that has none. */
  key: s.optional(s.string()),
  sessionId: s.string(),
  format: s.choice(["jsonl", "md", "html"]),
  content: s.optional(s.string()),
  file: s.optional(s.string()),
  bytes: s.optional(s.integer()),
});
export type ExportPayload = s.Static<typeof ExportSchema>;
