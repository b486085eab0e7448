import type { Static } from "typebox";
import type * as Schema from "./messages.schema.ts";

/** Where a large text or image lives instead of in the line. */
export interface BlobRef extends Static<typeof Schema.BlobRefSchema> {}
export interface TextBlock extends Static<typeof Schema.TextBlockSchema> {}
export interface ThinkingBlock extends Static<typeof Schema.ThinkingBlockSchema> {}
export interface ImageBlock extends Static<typeof Schema.ImageBlockSchema> {}
export interface ToolCallBlock extends Static<typeof Schema.ToolCallBlockSchema> {}

/** Content of user messages and tool results. A block of an unknown type may be among them at run time. */
export type Content = string | (TextBlock | ImageBlock)[];
export type AssistantBlock = TextBlock | ThinkingBlock | ToolCallBlock;

export interface Usage extends Static<typeof Schema.UsageSchema> {}
/** Whether a message was written in the agent's place: no model answered. */
export function isNote({ provider, model }: Pick<AssistantMessage, "provider" | "model">): boolean {
  return provider === "skein" && model === "note";
}

export interface Provenance extends Static<typeof Schema.ProvenanceSchema> {}

export interface UserMessage extends Static<typeof Schema.UserMessageSchema> {}
export interface AssistantMessage extends Static<typeof Schema.AssistantMessageSchema> {}
export interface ToolResultMessage extends Static<typeof Schema.ToolResultMessageSchema> {}
export interface BashExecutionMessage extends Static<typeof Schema.BashExecutionMessageSchema> {}
export interface CustomRoleMessage extends Static<typeof Schema.CustomRoleMessageSchema> {}
export interface SystemMessage extends Static<typeof Schema.SystemMessageSchema> {}

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
