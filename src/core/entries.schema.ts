import Type from "typebox";
import { anotherTag, ContentSchema, MessageSchema, UsageSchema } from "./messages.schema.ts";

/** The lines of a session file. The same reading contract as `messages.schema.ts`, and the same warning. */

export const HeaderSchema = Type.Object({
  type: Type.Literal("session"),
  /** Absent in version 1. */
  version: Type.Optional(Type.Number()),
  id: Type.String({ minLength: 1 }),
  timestamp: Type.Optional(Type.String()),
  cwd: Type.Optional(Type.String()),
  parentSession: Type.Optional(Type.String()),
  skein: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});

const entry = <N extends string, T extends Type.TProperties>(type: N, fields: T) =>
  Type.Object({
    type: Type.Literal(type),
    id: Type.String({ minLength: 1 }),
    parentId: Type.Union([Type.String(), Type.Null()]),
    timestamp: Type.String(),
    ...fields,
  });

export const MessageEntrySchema = entry("message", { message: MessageSchema });
export const ModelChangeSchema = entry("model_change", { provider: Type.String(), modelId: Type.String() });
export const ThinkingLevelChangeSchema = entry("thinking_level_change", { thinkingLevel: Type.String() });
export const CompactionSchema = entry("compaction", {
  summary: Type.String(),
  /** Equal to the entry's own id: nothing before it is kept. */
  firstKeptEntryId: Type.Optional(Type.String()),
  tokensBefore: Type.Optional(Type.Number()),
  details: Type.Optional(Type.Unknown()),
  fromHook: Type.Optional(Type.Boolean()),
});
export const BranchSummarySchema = entry("branch_summary", {
  /** The leaf that was left, or "root"; older files have the branch point here. */
  fromId: Type.Optional(Type.String()),
  summary: Type.String(),
  details: Type.Optional(Type.Unknown()),
  fromHook: Type.Optional(Type.Boolean()),
});
export const CustomEntrySchema = entry("custom", {
  customType: Type.String(),
  data: Type.Optional(Type.Unknown()),
});
export const CustomMessageSchema = entry("custom_message", {
  customType: Type.String(),
  content: ContentSchema,
  display: Type.Optional(Type.Boolean()),
  details: Type.Optional(Type.Unknown()),
});
export const LabelSchema = entry("label", {
  targetId: Type.String(),
  /** Absent or empty: the label is taken away. */
  label: Type.Optional(Type.String()),
});
export const SessionInfoSchema = entry("session_info", {
  /** Absent or empty: the name is taken away. */
  name: Type.Optional(Type.String()),
});

// What later versions of pi and its harness add; `leaf` and `active_tools_change` are read and never written.
export const UsageEntrySchema = entry("usage", {
  provider: Type.Optional(Type.String()),
  model: Type.Optional(Type.String()),
  usage: Type.Optional(UsageSchema),
});
export const ContextEditSchema = entry("context_edit", {
  targetId: Type.String(),
  replacement: Type.Union([Type.Null(), Type.Object({ content: ContentSchema })]),
});
export const LeafSchema = entry("leaf", { targetId: Type.Union([Type.String(), Type.Null()]) });
export const ActiveToolsChangeSchema = entry("active_tools_change", {
  activeToolNames: Type.Array(Type.String()),
});

export const EntrySchema = Type.Union([
  MessageEntrySchema,
  ModelChangeSchema,
  ThinkingLevelChangeSchema,
  CompactionSchema,
  BranchSummarySchema,
  CustomEntrySchema,
  CustomMessageSchema,
  LabelSchema,
  SessionInfoSchema,
  UsageEntrySchema,
  ContextEditSchema,
  LeafSchema,
  ActiveToolsChangeSchema,
]);

const knownTypes = EntrySchema.anyOf.map((each) => each.properties.type.const);

/** An entry of a type that we do not know: kept, chained, and never seen by the model. */
export const UnknownEntrySchema = Type.Intersect([
  anotherTag("type", ["session", ...knownTypes]),
  Type.Object({
    type: Type.String(),
    id: Type.String({ minLength: 1 }),
    parentId: Type.Union([Type.String(), Type.Null()]),
    timestamp: Type.String(),
  }),
]);
