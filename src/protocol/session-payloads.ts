import type { Static } from "typebox";
import Type from "typebox";

/** What the session commands print with `--json`, and the gateway's methods of the same name answer. */

const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const DiagnosticSchema = Type.Object({
  code: Type.String(),
  note: Type.String(),
  line: Type.Optional(Type.Integer()),
  entryId: Type.Optional(Type.String()),
});

const session = {
  /** Absent for a lone file that has none. */
  sessionKey: Type.Optional(Type.String()),
  sessionId: Type.String(),
  leafId: nullable(Type.String()),
};

/** `chat.history`, `sessions show`. */
export const HistorySchema = Type.Object({
  ...session,
  messages: Type.Array(Type.Object({ id: Type.String(), role: Type.String() })),
  nextBefore: Type.Optional(Type.String()),
  nextAfter: Type.Optional(Type.String()),
  /** Accepted input that is not yet conversation. */
  pending: Type.Array(Type.Unknown()),
  /** A text was cut, or messages were left out for size. */
  truncated: Type.Boolean(),
  diagnostics: Type.Optional(Type.Array(DiagnosticSchema)),
});
export type HistoryPayload = Static<typeof HistorySchema>;

/** `sessions.tree`, `sessions tree`. Flat, in the order of the file: a tree may be deeper than JSON can nest. */
export const TreeSchema = Type.Object({
  ...session,
  name: Type.Optional(Type.String()),
  tipId: nullable(Type.String()),
  entries: Type.Array(
    Type.Object({
      id: Type.String(),
      parentId: nullable(Type.String()),
      type: Type.String(),
      role: Type.Optional(Type.String()),
      timestamp: Type.String(),
      /** On the branch that ends in the tip. */
      active: Type.Boolean(),
      /** A label, a name or an entry of our own: no conversation. */
      bookkeeping: Type.Boolean(),
      label: Type.Optional(Type.String()),
      /** One line, 200 characters at the most. */
      preview: Type.String(),
    }),
  ),
  diagnostics: Type.Optional(Type.Array(DiagnosticSchema)),
});
export type TreePayload = Static<typeof TreeSchema>;
export type TreeRow = TreePayload["entries"][number];

/** `sessions.context`, `context`: what would be sent to a model. What is not known is absent. */
export const ContextPayloadSchema = Type.Object({
  request: Type.Object({
    provider: Type.Optional(Type.String()),
    api: Type.Optional(Type.String()),
    model: Type.Optional(Type.String()),
    thinkingLevel: Type.String(),
    system: Type.Optional(Type.String()),
    messages: Type.Array(Type.Object({ role: Type.String() })),
    tools: Type.Optional(Type.Array(Type.Unknown())),
  }),
  tokens: nullable(Type.Record(Type.String(), Type.Number())),
  changes: Type.Array(Type.Unknown()),
  diagnostics: Type.Array(DiagnosticSchema),
});
export type ContextPayload = Static<typeof ContextPayloadSchema>;

/** `sessions repair`. */
export const RepairSchema = Type.Object({
  file: Type.String(),
  damaged: Type.Array(Type.Object({ line: Type.Integer(), reason: Type.String() })),
  headerRebuilt: Type.Boolean(),
  bridged: Type.Array(Type.String()),
  kept: Type.Integer(),
  backup: nullable(Type.String()),
});
export type RepairPayload = Readonly<Omit<Static<typeof RepairSchema>, "damaged" | "bridged">> & {
  readonly damaged: readonly { readonly line: number; readonly reason: string }[];
  readonly bridged: readonly string[];
};

/** Any refusal, on any surface. */
export const RefusalSchema = Type.Object({
  status: Type.Literal("error"),
  code: Type.String(),
  error: Type.String(),
});
export type RefusalPayload = Static<typeof RefusalSchema>;
