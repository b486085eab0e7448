import type { Static } from "typebox";
import Type from "typebox";

/** What the session commands print with `--json`, and the gateway's methods of the same name answer. */

const strict = { additionalProperties: false };
const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const DiagnosticSchema = Type.Object(
  {
    code: Type.String(),
    note: Type.String(),
    line: Type.Optional(Type.Integer()),
    entryId: Type.Optional(Type.String()),
  },
  strict,
);

const session = {
  /** Absent for a lone file that has none. */
  sessionKey: Type.Optional(Type.String()),
  sessionId: Type.String(),
  leafId: nullable(Type.String()),
};

/** `chat.history`, `sessions show`. */
export const HistorySchema = Type.Object(
  {
    ...session,
    messages: Type.Array(Type.Object({ id: Type.String(), role: Type.String() })),
    nextBefore: Type.Optional(Type.String()),
    nextAfter: Type.Optional(Type.String()),
    /** Accepted input that is not yet conversation. */
    pending: Type.Array(
      Type.Object(
        {
          runId: Type.String(),
          role: Type.String(),
          /** Texts and images, cut as the messages are. */
          content: Type.Unknown(),
          timestamp: Type.Number(),
          state: Type.String(),
        },
        strict,
      ),
    ),
    /** A text was cut, or messages were left out for size. */
    truncated: Type.Boolean(),
    diagnostics: Type.Optional(Type.Array(DiagnosticSchema)),
  },
  strict,
);
export type HistoryPayload = Static<typeof HistorySchema>;

/** `sessions.tree`, `sessions tree`. Flat, in the order of the file: a tree may be deeper than JSON can nest. */
export const TreeSchema = Type.Object(
  {
    ...session,
    name: Type.Optional(Type.String()),
    tipId: nullable(Type.String()),
    entries: Type.Array(
      Type.Object(
        {
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
        },
        strict,
      ),
    ),
    /** For the next page, where not all were asked for. */
    nextAfter: Type.Optional(Type.String()),
    diagnostics: Type.Optional(Type.Array(DiagnosticSchema)),
  },
  strict,
);
export type TreePayload = Static<typeof TreeSchema>;
export type TreeRow = TreePayload["entries"][number];

const tokens = Type.Number({ minimum: 0 });

/** About what each part of a request comes to, in tokens. */
export const TokensSchema = Type.Object(
  {
    system: tokens,
    tools: tokens,
    /** Absent where the request has no summary. */
    summary: Type.Optional(tokens),
    user: tokens,
    assistant: tokens,
    thinking: tokens,
    toolCalls: tokens,
    toolResults: tokens,
    images: tokens,
    total: tokens,
    /** The model's context window. */
    window: Type.Optional(tokens),
  },
  strict,
);

/** One thing that was done to the messages for the provider's sake. */
export const ChangeSchema = Type.Object(
  {
    step: Type.String(),
    entryId: Type.Optional(Type.String()),
    kind: Type.String(),
    note: Type.String(),
  },
  strict,
);

/** `sessions.context`, `context`: what would be sent to a model. What is not known is absent. */
export const ContextPayloadSchema = Type.Object(
  {
    request: Type.Object(
      {
        provider: Type.Optional(Type.String()),
        api: Type.Optional(Type.String()),
        model: Type.Optional(Type.String()),
        thinkingLevel: Type.String(),
        system: Type.Optional(Type.String()),
        messages: Type.Array(Type.Object({ role: Type.String() })),
        tools: Type.Optional(Type.Array(Type.Object({ name: Type.String() }))),
        /** Servers whose tools a run would offer too, and which would have to be started to tell them. */
        toolsUnlisted: Type.Optional(Type.Array(Type.String())),
      },
      strict,
    ),
    tokens: TokensSchema,
    changes: Type.Array(ChangeSchema),
    diagnostics: Type.Array(DiagnosticSchema),
    /** The provider's body, as it would be sent; where it was asked for. */
    wire: Type.Optional(Type.Unknown()),
  },
  strict,
);
export type ContextPayload = Frozen<Static<typeof ContextPayloadSchema>>;

/** Made to be printed, not to be changed. */
type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Field in keyof T]: Frozen<T[Field]> }
    : T;

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
