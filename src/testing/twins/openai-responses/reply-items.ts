import type { ScriptedBlock, ScriptedReply } from "../contract.ts";
import { alphanumericId } from "../openai-shared-script.ts";
import { sealReasoning } from "./encrypted-content.ts";

/** The output items of an answer, as they are when they are done. */

export interface ReasoningItem {
  readonly id: string;
  readonly type: "reasoning";
  readonly summary: readonly { readonly type: "summary_text"; readonly text: string }[];
  readonly encrypted_content?: string;
}

export interface MessageItem {
  readonly id: string;
  readonly type: "message";
  readonly status: "completed" | "incomplete";
  readonly role: "assistant";
  readonly content: readonly [TextPart];
}

export interface TextPart {
  readonly type: "output_text";
  readonly annotations: readonly [];
  readonly logprobs: readonly [];
  readonly text: string;
}

export interface CallItem {
  readonly id: string;
  readonly type: "function_call";
  readonly status: "completed" | "incomplete";
  readonly call_id: string;
  readonly name: string;
  readonly arguments: string;
}

export type OutputItem = ReasoningItem | MessageItem | CallItem;

export interface Manner {
  readonly model: string;
  /** "`reasoning.encrypted_content`: includes an encrypted version of reasoning tokens" (API reference, include) */
  readonly isEncrypted: boolean;
  /** Summaries come only where `reasoning.summary` asks for them (Reasoning guide, "Reasoning summaries"). */
  readonly isSummarised: boolean;
}

export function outputItems(reply: ScriptedReply, manner: Manner, newId: () => string): OutputItem[] {
  const status = reply.stopReason === "length" ? "incomplete" : "completed";
  return reply.content.map((block) => itemOf(block, status, manner, newId));
}

function itemOf(
  block: ScriptedBlock,
  status: MessageItem["status"],
  manner: Manner,
  newId: () => string,
): OutputItem {
  const hex = () => alphanumericId(newId, 48);
  switch (block.type) {
    case "text":
      return {
        id: `msg_${hex()}`,
        type: "message",
        status,
        role: "assistant",
        content: [textPart(block.text)],
      };
    case "thinking":
      return reasoningItem(block.redacted === true ? "" : block.thinking, manner, `rs_${hex()}`);
    case "toolCall":
      return {
        id: `fc_${hex()}`,
        type: "function_call",
        status,
        call_id: block.id ?? `call_${alphanumericId(newId, 24)}`,
        name: block.name,
        arguments: JSON.stringify(block.arguments),
      };
  }
}

export function textPart(text: string): TextPart {
  return { type: "output_text", annotations: [], logprobs: [], text };
}

function reasoningItem(thinking: string, manner: Manner, id: string): ReasoningItem {
  return {
    id,
    type: "reasoning",
    summary: manner.isSummarised && thinking !== "" ? [{ type: "summary_text", text: thinking }] : [],
    ...(manner.isEncrypted ? { encrypted_content: sealReasoning(manner.model, id) } : {}),
  };
}
