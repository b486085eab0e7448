import type { Static } from "typebox";
import Type from "typebox";

/** Sessions in from elsewhere, and out to be read. */

const strict = { additionalProperties: false };

export const NotKeptSchema = Type.Object(
  { what: Type.String(), count: Type.Integer(), example: Type.Optional(Type.String()) },
  strict,
);

/** `sessions.import`, `sessions import`. */
export const ImportSchema = Type.Object(
  {
    imported: Type.Array(
      Type.Object(
        {
          key: Type.String(),
          sessionId: Type.String(),
          file: Type.String(),
          entries: Type.Integer(),
          notKept: Type.Array(NotKeptSchema),
        },
        strict,
      ),
    ),
    failed: Type.Array(
      Type.Object({ file: Type.String(), code: Type.String(), error: Type.String() }, strict),
    ),
    /** Imported before, and left as they are; absent when there are none. */
    skipped: Type.Optional(
      Type.Array(
        Type.Object(
          { key: Type.String(), sessionId: Type.String(), file: Type.String(), why: Type.String() },
          strict,
        ),
      ),
    ),
    /** Files of other programs than `from` names; absent when there are none. */
    ignored: Type.Optional(Type.Array(Type.Object({ file: Type.String(), why: Type.String() }, strict))),
  },
  strict,
);
export type ImportPayload = Static<typeof ImportSchema>;
export type ImportedRow = ImportPayload["imported"][number];
export type FailedRow = ImportPayload["failed"][number];
export type IgnoredRow = NonNullable<ImportPayload["ignored"]>[number];
export type SkippedRow = NonNullable<ImportPayload["skipped"]>[number];

/** `sessions.export`, `sessions export`: the text itself, or where it was written. */
export const ExportSchema = Type.Object(
  {
    /** Absent for a lone file that has none. */
    key: Type.Optional(Type.String()),
    sessionId: Type.String(),
    format: Type.Enum(["jsonl", "md", "html"]),
    content: Type.Optional(Type.String()),
    file: Type.Optional(Type.String()),
    bytes: Type.Optional(Type.Integer()),
  },
  strict,
);
export type ExportPayload = Static<typeof ExportSchema>;
