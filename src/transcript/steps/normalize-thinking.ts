import type { AssistantBlock, AssistantMessage, ThinkingBlock } from "../../core/messages.ts";
import { isBase64 } from "../../core/text.ts";
import type { StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { StepOptions } from "../derive.ts";
import { derive, mapMessages } from "../derive.ts";
import { apiOf } from "../policy.ts";

/**
 * Step 3: converts a model's own thinking to a form that its provider accepts. Thinking from another model is sent as
 * text or dropped. Truncated thinking and foreign signatures are dropped.
 */
export function normalizeThinking(
  messages: readonly TranscriptMessage[],
  {
    policy,
    record,
    isSealedThinkingRejected = false,
  }: Pick<StepOptions, "policy" | "record" | "isSealedThinkingRejected">,
): StepResult {
  return mapMessages(messages, record, (message, tell) => {
    if (message.role !== "assistant" || !hasSomethingToCheck(message)) return message;
    const isOwn = !isSealedThinkingRejected && isFromModel(message, policy);
    const bare = isOwn ? message : stripMetadata(message);
    if (bare !== message) tell("metadata_removed", "Metadata from another provider is not sent.");
    const blocks = bare.content.flatMap((block) => {
      // Without a signature, there is no proof that the thinking is complete.
      const isUnsigned =
        (isOwn && policy.thinking === "plain") || !("thinkingSignature" in block && block.thinkingSignature);
      const isCutOff = message.stopReason === "aborted" && block.type === "thinking" && isUnsigned;
      const { block: kept, kind, note } = isCutOff ? truncatedThinking : normalizeBlock(block, isOwn, policy);
      if (kind !== undefined) tell(kind, note ?? "");
      return kept === null ? [] : [kept];
    });
    const isSame =
      blocks.length === bare.content.length && blocks.every((block, at) => block === bare.content[at]);
    return isSame ? bare : derive(bare, { content: blocks });
  });
}

function hasSomethingToCheck(message: AssistantMessage): boolean {
  if (message.skein?.providerMetadata !== undefined) return true;
  return message.content.some((block) => {
    if (block.type === "thinking" || block.skein?.providerMetadata !== undefined) return true;
    return block.type === "text" ? block.textSignature !== undefined : block.thoughtSignature !== undefined;
  });
}

/**
 * Removes provider metadata, which can also contain signatures and item IDs. It cannot be matched by the provider's
 * name, because two providers can share a name.
 */
function stripMetadata(message: AssistantMessage): AssistantMessage {
  const has = (each: { skein?: { providerMetadata?: unknown } }) =>
    each.skein?.providerMetadata !== undefined;
  if (!has(message) && !message.content.some(has)) return message;
  const strip = <T extends { skein?: { providerMetadata?: unknown } }>(each: T): T =>
    has(each) ? { ...each, skein: { ...each.skein, providerMetadata: undefined } } : each;
  const content = message.content.map(strip);
  const { skein } = strip(message);
  return derive(message, { content, ...(skein === undefined ? {} : { skein }) });
}

/** Whether this model wrote the message over the same wire format. */
function isFromModel({ provider, model, api }: AssistantMessage, policy: TranscriptPolicy): boolean {
  if (provider !== policy.provider || model !== policy.model) return false;
  return api === undefined || apiOf(provider, api) === policy.api;
}

interface Normalized {
  readonly block: AssistantBlock | null;
  readonly kind?: string;
  readonly note?: string;
}

const truncatedThinking: Normalized = {
  block: null,
  kind: "thinking_removed",
  note: "The thinking was cut off before it was signed.",
};

function normalizeBlock(block: AssistantBlock, isOwn: boolean, policy: TranscriptPolicy): Normalized {
  switch (block.type) {
    case "thinking":
      return isOwn ? normalizeOwnThinking(block, policy) : normalizeForeignThinking(block, policy);
    case "text": {
      if (block.textSignature === undefined || policy.sanitizeMode === "images-only") return { block };
      if (isOwn && policy.thinking === "base64" && isBase64(block.textSignature)) return { block };
      const { textSignature: _, ...bare } = block;
      return {
        block: bare,
        kind: "signature_removed",
        note: "The text's signature is not valid for this model.",
      };
    }
    default: {
      if (block.thoughtSignature === undefined) return { block };
      if (isOwn && policy.thinking === "base64" && isBase64(block.thoughtSignature)) return { block };
      const { thoughtSignature: _, ...bare } = block;
      return {
        block: bare,
        kind: "signature_removed",
        note: "The call's signature is not valid for this model.",
      };
    }
  }
}

function normalizeOwnThinking(block: ThinkingBlock, { thinking }: TranscriptPolicy): Normalized {
  if (isReplayable(block, thinking)) return thinking === "plain" ? removeSignature(block) : { block };
  const note =
    thinking === "none"
      ? "This provider does not accept thinking in requests."
      : "The thinking has no signature that its provider accepts.";
  return { block: null, kind: "thinking_removed", note };
}

function removeSignature(block: ThinkingBlock): Normalized {
  if (block.thinkingSignature === undefined) return { block };
  const { thinkingSignature: _, ...bare } = block;
  return { block: bare, kind: "signature_removed", note: "This provider does not sign thinking." };
}

function isReplayable(block: ThinkingBlock, form: TranscriptPolicy["thinking"]): boolean {
  const signature = block.thinkingSignature ?? "";
  switch (form) {
    case "signed":
      return isBase64(signature);
    case "base64":
      return isBase64(signature) && block.redacted !== true && block.thinking.trim() !== "";
    case "items":
      return readReasoningItem(signature) !== null;
    case "plain":
      return block.redacted !== true && block.thinking.trim() !== "";
    case "none":
      return false;
  }
}

function normalizeForeignThinking(block: ThinkingBlock, policy: TranscriptPolicy): Normalized {
  if (policy.foreignThinking === "drop" || block.redacted === true || block.thinking.trim() === "") {
    return { block: null, kind: "thinking_removed", note: "Thinking from another model is not sent." };
  }
  const text = { type: "text" as const, text: block.thinking };
  return { block: text, kind: "thinking_to_text", note: "Thinking from another model is sent as text." };
}

/** A reasoning item of the Responses API, as stored in a thinking signature. */
interface ReasoningItem {
  readonly id: string;
  readonly encrypted_content: string;
}

/** Returns `null` if the signature is not an item, or if the item can be used only on the server that stores it. */
export function readReasoningItem(signature: string | undefined): ReasoningItem | null {
  if (typeof signature !== "string" || !signature.startsWith("{")) return null;
  try {
    const item = JSON.parse(signature) as Partial<ReasoningItem & { type: unknown }> | null;
    if (item?.type !== "reasoning") return null;
    if (typeof item.id !== "string" || !/^rs[A-Za-z0-9_-]{1,62}$/.test(item.id)) return null;
    const sealed = item.encrypted_content;
    return typeof sealed === "string" && sealed !== "" ? { id: item.id, encrypted_content: sealed } : null;
  } catch {
    return null;
  }
}
