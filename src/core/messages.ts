import { fits } from "./check-schema.ts";
import * as s from "./schema.ts";

/**
 * Messages as a reader may rely on them, whichever program wrote them. Fields that other programs or older versions leave out
 * are optional; messages that Skein writes are complete (see `seal.ts`). Unknown fields are kept.
 */

const BlobRefSchema = s.object({
  sha256: s.string(),
  bytes: s.number(),
  mimeType: s.string(),
  was: s.string(),
});
/** Where a large text or image lives instead of in the line. */
export interface BlobRef extends s.Static<typeof BlobRefSchema> {}

const anyRecord = s.record(s.unknown());
/** What a provider said of a block or message, by the provider's name: kept as it came, to be given back. */
const ours = { providerMetadata: s.optional(anyRecord) };

const TextBlockSchema = s.object({
  type: s.literal("text"),
  text: s.string(),
  textSignature: s.optional(s.string()),
  skein: s.optional(
    s.object({
      ...ours,
      blob: s.optional(BlobRefSchema),
      /** What this text stands in for: a part of a message that the format has no block for. */
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
      /** The model's arguments were no object; `arguments.input` is what it wrote. */
      invalidInput: s.optional(s.boolean()),
    }),
  ),
});
export interface ToolCallBlock extends s.Static<typeof ToolCallBlockSchema> {}

const BlockSchema = s.openUnion("type", [TextBlockSchema, ImageBlockSchema]);
const AssistantBlockSchema = s.openUnion("type", [TextBlockSchema, ThinkingBlockSchema, ToolCallBlockSchema]);

/** Content of user messages and tool results. A block of an unknown type may be among them at run time. */
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

const ProvenanceSchema = s.object({
  /** `external_user | inter_session | internal_system`; others may come. */
  kind: s.string(),
  sourceSessionKey: s.optional(s.string()),
  sourceChannel: s.optional(s.string()),
  sourceTool: s.optional(s.string()),
  /** Of a message in a group: who wrote it, by the channel's ID. */
  sourcePeer: s.optional(s.string()),
  sourcePeerName: s.optional(s.string()),
  rootId: s.optional(s.string()),
  hops: s.optional(s.number()),
  deliveryId: s.optional(s.string()),
  /** Set by Skein alone, for a spawned session's task and for announcements: sent to the model without a fence around it. */
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
  /** `stop | length | toolUse | error | aborted`; later versions of other programs add to it. */
  stopReason: s.optional(s.string()),
  errorMessage: s.optional(s.string()),
  timestamp: s.optional(s.number()),
  /** Of a note: who wrote it in the agent's place. */
  provenance: s.optional(ProvenanceSchema),
  skein: s.optional(
    s.object({
      ...ours,
      /** The response's own id, model, time and metadata. */
      response: s.optional(anyRecord),
      /** Usage and the reason for stopping, in the provider's words. */
      usage: s.optional(anyRecord),
      finishReason: s.optional(anyRecord),
      /** `false`: the price was not known, and the cost of nothing stands for that. */
      costKnown: s.optional(s.boolean()),
      /** Of an answer that failed: how often it was tried, and whether another try may help. */
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
      /** The same of the message that held this result and those behind it. */
      groupMetadata: s.optional(anyRecord),
      /** What the result was where it is no text: `json`, `execution-denied`. */
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

/** Written by later versions of pi: the system prompt as it then was. */
const SystemMessageSchema = s.object({
  role: s.literal("system"),
  content: ContentSchema,
  timestamp: s.optional(s.number()),
});
export interface SystemMessage extends s.Static<typeof SystemMessageSchema> {}

/**
 * A message as it stands in an entry. Messages of unknown roles are kept too; code that switches on `role`
 * passes them by.
 */
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

/** Whether a block can stand in the content of a message of this role. */
export function isUsableBlock(role: unknown, value: unknown): boolean {
  const schema: s.Schema = role === "assistant" ? AssistantBlockSchema : BlockSchema;
  return fits(schema, value);
}

/** Whether a message was written in the agent's place: no model answered. */
export function isNote({ provider, model }: Pick<AssistantMessage, "provider" | "model">): boolean {
  return provider === "skein" && model === "note";
}

/** The custom type of entries that hold what hooks put before a prompt. */
export const prependedContextType = "skein.context";

/** The text of a content, blocks joined by line breaks; images and calls contribute nothing. */
export function textOf(content: Content | readonly AssistantBlock[]): string {
  if (typeof content === "string") return content;
  return content
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("\n");
}
