import { fits } from "./check-schema.ts";
import * as s from "./schema.ts";

/**
 * Messages in any form that a program might have written. Fields that other programs or older versions omit are
 * optional. Messages that Skein writes are complete (see `seal.ts`). Unknown fields are kept.
 */

const BlobRefSchema = s.object({
  sha256: s.string(),
  bytes: s.number(),
  mimeType: s.string(),
  was: s.string(),
});
/** A reference to a large text or image that is stored outside the line. */
export interface BlobRef extends s.Static<typeof BlobRefSchema> {}

const anyRecord = s.record(s.unknown());
/** A provider's metadata for a block or message, by provider name. It is sent back unchanged. */
const ours = { providerMetadata: s.optional(anyRecord) };

const TextBlockSchema = s.object({
  type: s.literal("text"),
  text: s.string(),
  textSignature: s.optional(s.string()),
  skein: s.optional(
    s.object({
      ...ours,
      blob: s.optional(BlobRefSchema),
      /** The message part that this text replaces. The format has no block type for it. */
      part: s.optional(anyRecord),
    }),
  ),
});
export interface TextBlock extends s.Static<typeof TextBlockSchema> {}

const ThinkingBlockSchema = s.object({
  type: s.literal("thinking"),
  thinking: s.string(),
  thinkingSignature: s.optional(s.string()),
  redacted: s.optional(s.boolean()),
  skein: s.optional(s.object(ours)),
});
export interface ThinkingBlock extends s.Static<typeof ThinkingBlockSchema> {}

const ImageBlockSchema = s.object({
  type: s.literal("image"),
  data: s.string(),
  mimeType: s.string(),
  skein: s.optional(s.object({ ...ours, filename: s.optional(s.string()) })),
});
export interface ImageBlock extends s.Static<typeof ImageBlockSchema> {}

const ToolCallBlockSchema = s.object({
  type: s.literal("toolCall"),
  id: s.string(),
  name: s.string(),
  arguments: anyRecord,
  thoughtSignature: s.optional(s.string()),
  skein: s.optional(
    s.object({
      ...ours,
      /** Set if the model's arguments were not an object. `arguments.input` has the original. */
      invalidInput: s.optional(s.boolean()),
    }),
  ),
});
export interface ToolCallBlock extends s.Static<typeof ToolCallBlockSchema> {}

const BlockSchema = s.openUnion("type", [TextBlockSchema, ImageBlockSchema]);
const AssistantBlockSchema = s.openUnion("type", [TextBlockSchema, ThinkingBlockSchema, ToolCallBlockSchema]);

/** The content of user messages and tool results. At run time, it can contain blocks of unknown types. */
export type Content = string | (TextBlock | ImageBlock)[];
export const ContentSchema: s.Schema<Content> = s.union([s.string(), s.array(BlockSchema)]);
export type AssistantBlock = TextBlock | ThinkingBlock | ToolCallBlock;

const CostSchema = s.object({
  input: s.optional(s.number()),
  output: s.optional(s.number()),
  cacheRead: s.optional(s.number()),
  cacheWrite: s.optional(s.number()),
  total: s.optional(s.number()),
});

export const UsageSchema = s.object({
  input: s.optional(s.number()),
  output: s.optional(s.number()),
  cacheRead: s.optional(s.number()),
  cacheWrite: s.optional(s.number()),
  totalTokens: s.optional(s.number()),
  cost: s.optional(CostSchema),
});
export interface Usage extends s.Static<typeof UsageSchema> {}

export const ProvenanceSchema = s.object({
  /** `external_user | inter_session | internal_system`. Later versions might add values. */
  kind: s.string(),
  sourceSessionKey: s.optional(s.string()),
  sourceChannel: s.optional(s.string()),
  sourceTool: s.optional(s.string()),
  /** In a group, the author's ID on the channel. */
  sourcePeer: s.optional(s.string()),
  sourcePeerName: s.optional(s.string()),
  rootId: s.optional(s.string()),
  hops: s.optional(s.number()),
  deliveryId: s.optional(s.string()),
  /**
   * Whether the text is sent to the model without a fence. Only Skein sets this, for announcements and for the tasks of
   * spawned sessions.
   */
  verbatim: s.optional(s.boolean()),
});
export interface Provenance extends s.Static<typeof ProvenanceSchema> {}

const UserMessageSchema = s.object({
  role: s.literal("user"),
  content: ContentSchema,
  timestamp: s.optional(s.number()),
  provenance: s.optional(ProvenanceSchema),
  skein: s.optional(s.object(ours)),
});
export interface UserMessage extends s.Static<typeof UserMessageSchema> {}

const AssistantMessageSchema = s.object({
  role: s.literal("assistant"),
  content: s.array(AssistantBlockSchema),
  api: s.optional(s.string()),
  provider: s.optional(s.string()),
  model: s.optional(s.string()),
  usage: s.optional(UsageSchema),
  /** `stop | length | toolUse | error | aborted`. Other programs might add values. */
  stopReason: s.optional(s.string()),
  errorMessage: s.optional(s.string()),
  timestamp: s.optional(s.number()),
  /** The author of a note. */
  provenance: s.optional(ProvenanceSchema),
  skein: s.optional(
    s.object({
      ...ours,
      /** The ID, model, time and metadata of the response. */
      response: s.optional(anyRecord),
      /** Usage and stop reason as the provider reports them. */
      usage: s.optional(anyRecord),
      finishReason: s.optional(anyRecord),
      /** `false` if the price was unknown, in which case the cost is recorded as 0. */
      costKnown: s.optional(s.boolean()),
      /** Skein's estimate of the request's tokens. `usage` has the provider's count. */
      requestTokens: s.optional(s.number()),
      /** For a failed answer, the number of attempts and whether a retry might succeed. */
      attempts: s.optional(s.number()),
      retryable: s.optional(s.boolean()),
    }),
  ),
});
export interface AssistantMessage extends s.Static<typeof AssistantMessageSchema> {}

const ToolResultMessageSchema = s.object({
  role: s.literal("toolResult"),
  toolCallId: s.string(),
  toolName: s.optional(s.string()),
  content: s.array(BlockSchema),
  details: s.optional(s.unknown()),
  isError: s.optional(s.boolean()),
  timestamp: s.optional(s.number()),
  skein: s.optional(
    s.object({
      ...ours,
      /** Metadata of the message that contained this result and the results that follow it. */
      groupMetadata: s.optional(anyRecord),
      /** The kind of result if it was not text: `json` or `execution-denied`. */
      output: s.optional(s.string()),
    }),
  ),
});
export interface ToolResultMessage extends s.Static<typeof ToolResultMessageSchema> {}

const BashExecutionMessageSchema = s.object({
  role: s.literal("bashExecution"),
  command: s.string(),
  output: s.string(),
  exitCode: s.optional(s.number()),
  cancelled: s.optional(s.boolean()),
  truncated: s.optional(s.boolean()),
  fullOutputPath: s.optional(s.string()),
  excludeFromContext: s.optional(s.boolean()),
  timestamp: s.optional(s.number()),
});
export interface BashExecutionMessage extends s.Static<typeof BashExecutionMessageSchema> {}

const CustomRoleMessageSchema = s.object({
  role: s.literal("custom"),
  customType: s.string(),
  content: ContentSchema,
  display: s.optional(s.boolean()),
  details: s.optional(s.unknown()),
  timestamp: s.optional(s.number()),
});
export interface CustomRoleMessage extends s.Static<typeof CustomRoleMessageSchema> {}

/** The system prompt at this point in the session. Only later versions of pi write it. */
const SystemMessageSchema = s.object({
  role: s.literal("system"),
  content: ContentSchema,
  timestamp: s.optional(s.number()),
});
export interface SystemMessage extends s.Static<typeof SystemMessageSchema> {}

/** A message in an entry. Messages with unknown roles are kept. Code that switches on `role` ignores them. */
export type Message =
  | UserMessage
  | AssistantMessage
  | ToolResultMessage
  | BashExecutionMessage
  | CustomRoleMessage
  | SystemMessage;

export const MessageSchema: s.Schema<Message> = s.openUnion("role", [
  UserMessageSchema,
  AssistantMessageSchema,
  ToolResultMessageSchema,
  BashExecutionMessageSchema,
  CustomRoleMessageSchema,
  SystemMessageSchema,
]);

/** Whether a message with this role can contain the block. */
export function isUsableBlock(role: unknown, value: unknown): boolean {
  const schema: s.Schema = role === "assistant" ? AssistantBlockSchema : BlockSchema;
  return fits(schema, value);
}

/** Whether the message was written in the agent's name, without a model. */
export function isNote({ provider, model }: Pick<AssistantMessage, "provider" | "model">): boolean {
  return provider === "skein" && model === "note";
}

/** The custom type of entries with context that hooks add before a prompt. */
export const prependedContextType = "skein.context";

/** Returns the text in a message's content, with blocks joined by line breaks. Images and calls are ignored. */
export function textOf(content: Content | readonly AssistantBlock[]): string {
  if (typeof content === "string") return content;
  return content
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("\n");
}

const binaryTypes = new Set(["image", "audio", "file", "document", "base64", "redacted_thinking"]);
const mimeNames = ["mimeType", "mediaType", "media_type"];

/** Whether a block's `data` is base64. */
export function isBinary(block: Readonly<Record<string, unknown>>): boolean {
  const { type, data } = block;
  if (typeof data !== "string") return false;
  const isOfType = typeof type === "string" && binaryTypes.has(type);
  return isOfType || mimeNames.some((name) => typeof block[name] === "string");
}
