import Type from "typebox";

/**
 * What a reader may rely on in a message of a session, whoever wrote it. Fields that other programs or older
 * versions leave out are optional here; what we write is complete (see `seal.ts`). Unknown fields are kept.
 *
 * This file loads TypeBox: import types from it, never values, outside of `protocol/` and tests.
 */

const open = <T extends Type.TProperties>(fields: T) => Type.Object(fields);

/** Anything with another tag than the known ones: kept and passed on, invisible in the types. */
const another = (tag: string, known: readonly string[]) =>
  Type.Unsafe<never>(Type.Object({ [tag]: Type.String({ pattern: `^(?!(?:${known.join("|")})$)` }) }));

export const BlobRefSchema = open({
  sha256: Type.String(),
  bytes: Type.Number(),
  mimeType: Type.String(),
  was: Type.String(),
});

const record = Type.Record(Type.String(), Type.Unknown());
/** What a provider said of a block or message, by the provider's name: kept as it came, to be given back. */
const ours = { providerMetadata: Type.Optional(record) };

export const TextBlockSchema = open({
  type: Type.Literal("text"),
  text: Type.String(),
  textSignature: Type.Optional(Type.String()),
  skein: Type.Optional(
    open({
      ...ours,
      blob: Type.Optional(BlobRefSchema),
      /** What this text stands in for: a part of a message that the format has no block for. */
      part: Type.Optional(record),
    }),
  ),
});

export const ThinkingBlockSchema = open({
  type: Type.Literal("thinking"),
  thinking: Type.String(),
  thinkingSignature: Type.Optional(Type.String()),
  redacted: Type.Optional(Type.Boolean()),
  skein: Type.Optional(open(ours)),
});

export const ImageBlockSchema = open({
  type: Type.Literal("image"),
  data: Type.String(),
  mimeType: Type.String(),
  skein: Type.Optional(open({ ...ours, filename: Type.Optional(Type.String()) })),
});

export const ToolCallBlockSchema = open({
  type: Type.Literal("toolCall"),
  id: Type.String(),
  name: Type.String(),
  arguments: Type.Record(Type.String(), Type.Unknown()),
  thoughtSignature: Type.Optional(Type.String()),
  skein: Type.Optional(
    open({
      ...ours,
      /** The model's arguments were no object; `arguments.input` is what it wrote. */
      invalidInput: Type.Optional(Type.Boolean()),
    }),
  ),
});

const BlocksSchema = Type.Array(
  Type.Union([TextBlockSchema, ImageBlockSchema, another("type", ["text", "image"])]),
);
const AssistantBlocksSchema = Type.Array(
  Type.Union([
    TextBlockSchema,
    ThinkingBlockSchema,
    ToolCallBlockSchema,
    another("type", ["text", "thinking", "toolCall"]),
  ]),
);

export const CostSchema = open({
  input: Type.Optional(Type.Number()),
  output: Type.Optional(Type.Number()),
  cacheRead: Type.Optional(Type.Number()),
  cacheWrite: Type.Optional(Type.Number()),
  total: Type.Optional(Type.Number()),
});

export const UsageSchema = open({
  input: Type.Optional(Type.Number()),
  output: Type.Optional(Type.Number()),
  cacheRead: Type.Optional(Type.Number()),
  cacheWrite: Type.Optional(Type.Number()),
  totalTokens: Type.Optional(Type.Number()),
  cost: Type.Optional(CostSchema),
});

export const ProvenanceSchema = open({
  /** `external_user | inter_session | internal_system`; others may come. */
  kind: Type.String(),
  sourceSessionKey: Type.Optional(Type.String()),
  sourceChannel: Type.Optional(Type.String()),
  sourceTool: Type.Optional(Type.String()),
  /** Of a message in a group: who wrote it, by the channel's ID. */
  sourcePeer: Type.Optional(Type.String()),
  sourcePeerName: Type.Optional(Type.String()),
  rootId: Type.Optional(Type.String()),
  hops: Type.Optional(Type.Number()),
  deliveryId: Type.Optional(Type.String()),
  /** Set by Skein alone, for a spawned session's task and for announcements: sent to the model without a fence around it. */
  verbatim: Type.Optional(Type.Boolean()),
});

export const UserMessageSchema = open({
  role: Type.Literal("user"),
  content: Type.Union([Type.String(), BlocksSchema]),
  timestamp: Type.Optional(Type.Number()),
  provenance: Type.Optional(ProvenanceSchema),
  skein: Type.Optional(open(ours)),
});

export const AssistantMessageSchema = open({
  role: Type.Literal("assistant"),
  content: AssistantBlocksSchema,
  api: Type.Optional(Type.String()),
  provider: Type.Optional(Type.String()),
  model: Type.Optional(Type.String()),
  usage: Type.Optional(UsageSchema),
  /** `stop | length | toolUse | error | aborted`; later versions of other programs add to it. */
  stopReason: Type.Optional(Type.String()),
  errorMessage: Type.Optional(Type.String()),
  timestamp: Type.Optional(Type.Number()),
  /** Of a note: who wrote it in the agent's place. */
  provenance: Type.Optional(ProvenanceSchema),
  skein: Type.Optional(
    open({
      ...ours,
      /** The response's own id, model, time and metadata. */
      response: Type.Optional(record),
      /** Usage and the reason for stopping, in the provider's words. */
      usage: Type.Optional(record),
      finishReason: Type.Optional(record),
      /** `false`: the price was not known, and the cost of nothing stands for that. */
      costKnown: Type.Optional(Type.Boolean()),
      /** Of an answer that failed: how often it was tried, and whether another try may help. */
      attempts: Type.Optional(Type.Number()),
      retryable: Type.Optional(Type.Boolean()),
    }),
  ),
});

export const ToolResultMessageSchema = open({
  role: Type.Literal("toolResult"),
  toolCallId: Type.String(),
  toolName: Type.Optional(Type.String()),
  content: BlocksSchema,
  details: Type.Optional(Type.Unknown()),
  isError: Type.Optional(Type.Boolean()),
  timestamp: Type.Optional(Type.Number()),
  skein: Type.Optional(
    open({
      ...ours,
      /** The same of the message that held this result and those behind it. */
      groupMetadata: Type.Optional(record),
      /** What the result was where it is no text: `json`, `execution-denied`. */
      output: Type.Optional(Type.String()),
    }),
  ),
});

export const BashExecutionMessageSchema = open({
  role: Type.Literal("bashExecution"),
  command: Type.String(),
  output: Type.String(),
  exitCode: Type.Optional(Type.Number()),
  cancelled: Type.Optional(Type.Boolean()),
  truncated: Type.Optional(Type.Boolean()),
  fullOutputPath: Type.Optional(Type.String()),
  excludeFromContext: Type.Optional(Type.Boolean()),
  timestamp: Type.Optional(Type.Number()),
});

export const CustomRoleMessageSchema = open({
  role: Type.Literal("custom"),
  customType: Type.String(),
  content: Type.Union([Type.String(), BlocksSchema]),
  display: Type.Optional(Type.Boolean()),
  details: Type.Optional(Type.Unknown()),
  timestamp: Type.Optional(Type.Number()),
});

/** Written by later versions of pi: the system prompt as it then was. */
export const SystemMessageSchema = open({
  role: Type.Literal("system"),
  content: Type.Union([Type.String(), BlocksSchema]),
  timestamp: Type.Optional(Type.Number()),
});

export const MessageSchema = Type.Union([
  UserMessageSchema,
  AssistantMessageSchema,
  ToolResultMessageSchema,
  BashExecutionMessageSchema,
  CustomRoleMessageSchema,
  SystemMessageSchema,
  another("role", ["user", "assistant", "toolResult", "bashExecution", "custom", "system"]),
]);

export const ContentSchema = Type.Union([Type.String(), BlocksSchema]);
export { another as anotherTag };
