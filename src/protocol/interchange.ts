import * as s from "../core/schema.ts";
import { agentId, fileContent, label, model, oneSession, reference, user } from "./fields.ts";
import { method } from "./method.ts";

/** Methods that import sessions from other programs and export sessions. */

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
  /** Sessions that were already imported and have not changed. Absent if there are none. */
  skipped: s.optional(
    s.array(s.closed({ key: s.string(), sessionId: s.string(), file: s.string(), why: s.string() })),
  ),
  /** Files that were skipped because they come from a program other than `from`. Absent if there are none. */
  ignored: s.optional(s.array(s.closed({ file: s.string(), why: s.string() }))),
});
export type ImportPayload = s.Static<typeof ImportSchema>;
export type ImportedRow = ImportPayload["imported"][number];
export type FailedRow = ImportPayload["failed"][number];
export type IgnoredRow = NonNullable<ImportPayload["ignored"]>[number];
export type SkippedRow = NonNullable<ImportPayload["skipped"]>[number];

/** `sessions.export`, `sessions export`: the exported text, or the file that it was written to. */
export const ExportSchema = s.closed({
  /** Absent for a single file without a key. */
  key: s.optional(s.string()),
  sessionId: s.string(),
  format: s.choice(["jsonl", "md", "html"]),
  content: s.optional(s.string()),
  file: s.optional(s.string()),
  bytes: s.optional(s.integer()),
});
export type ExportPayload = s.Static<typeof ExportSchema>;

/** Returns the text in one response. Fails with `too_large` if the text does not fit in a frame. */
export const sessionsExport = method({
  scope: "read",
  about: "Exports a session as JSONL, Markdown or a single HTML page.",
  params: s.closed({
    ...oneSession,
    format: s.optional(s.choice(["jsonl", "md", "html"], { default: "jsonl" })),
    /** For Markdown, includes all branches instead of only the active one. */
    all: s.optional(s.boolean()),
  }),
  result: ExportSchema,
  isIdempotent: true,
});

/**
 * Takes the contents of files, never paths on the gateway's machine. An OpenClaw session list is passed as one of the
 * files. The session metadata in a file takes effect only with `keepMetadata`. The other settings apply to every
 * imported session.
 */
export const sessionsImport = method({
  scope: "admin",
  about: "Imports sessions from pi, OpenClaw, Claude Code or Codex.",
  params: s.closed({
    files: s.array(s.closed({ name: s.string({ minLength: 1, maxLength: 1024 }), content: fileContent }), {
      minItems: 1,
      maxItems: 1000,
    }),
    /** By default, the program is detected from each file. */
    from: s.optional(s.choice(["pi", "openclaw", "claude-code", "codex"])),
    dryRun: s.optional(s.boolean()),
    /** Allowed only for a single session. */
    key: s.optional(reference),
    /** Allowed only for a single session. */
    label: s.optional(label),
    cwd: s.optional(s.string({ minLength: 1, maxLength: 4096 })),
    model: s.optional(model),
    sendPolicy: s.optional(s.choice(["allow", "deny"])),
    delivery: s.optional(
      s.closed({
        channel: label,
        to: s.optional(label),
        accountId: s.optional(label),
        threadId: s.optional(label),
      }),
    ),
    /** Applies the keys, working directories and metadata in the files. */
    keepMetadata: s.optional(s.boolean()),
    agentId: s.optional(agentId),
    ...user,
  }),
  result: ImportSchema,
  isIdempotent: true,
});
