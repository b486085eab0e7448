import type { AssistantBlock, AssistantMessage, ThinkingBlock } from "../../core/messages.ts";
import type {
  Change,
  StepResult,
  TranscriptMessage,
  TranscriptOptions,
  TranscriptPolicy,
} from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { derive } from "../derive.ts";
import { apiOf } from "../policy.ts";

interface Options extends Pick<TranscriptOptions, "isSealedThinkingRejected"> {
  readonly policy: TranscriptPolicy;
  readonly record: Recorder;
}

/**
 * Step 3: a model gets back its own thinking, in a form that its provider accepts; what another one thought goes out
 * as text, or not at all. Signatures of others do not go out, nor does thinking that was cut off.
 */
export function normalizeThinking(
  messages: readonly TranscriptMessage[],
  { policy, record, isSealedThinkingRejected = false }: Options,
): StepResult {
  const changes: Change[] = [];
  let changed = false;
  const after = messages.map((message) => {
    if (message.role !== "assistant" || !hasSomethingToCheck(message)) return message;
    const isOwn = !isSealedThinkingRejected && isFromModel(message, policy);
    const { told, bare } = isOwn ? { told: false, bare: message } : stripMetadata(message);
    if (told)
      changes.push(record("metadata_removed", "What another provider said of it does not go out.", message));
    const blocks = bare.content.flatMap((block) => {
      // Where nobody signs thinking, a signature does not say that it came to its end.
      const isUnsigned =
        (isOwn && policy.thinking === "plain") || !("thinkingSignature" in block && block.thinkingSignature);
      const isCutOff = message.stopReason === "aborted" && block.type === "thinking" && isUnsigned;
      const { block: kept, kind, note } = isCutOff ? truncatedThinking : normalizeBlock(block, isOwn, policy);
      if (kind !== undefined) changes.push(record(kind, note ?? "", message));
      return kept === null ? [] : [kept];
    });
    const same =
      blocks.length === bare.content.length && blocks.every((block, at) => block === bare.content[at]);
    if (same && !told) return message;
    changed = true;
    return same ? bare : derive(bare, { content: blocks });
  });
  return { messages: changed ? after : messages, changes };
}

function hasSomethingToCheck(message: AssistantMessage): boolean {
  if (message.skein?.providerMetadata !== undefined) return true;
  return message.content.some((block) => {
    if (block.type === "thinking" || block.skein?.providerMetadata !== undefined) return true;
    return block.type === "text" ? block.textSignature !== undefined : block.thoughtSignature !== undefined;
  });
}

/** Signatures and ids of items lie in there too, by the provider's name; a name may be another's by chance. */
function stripMetadata(message: AssistantMessage): { told: boolean; bare: AssistantMessage } {
  const has = (each: { skein?: { providerMetadata?: unknown } }) =>
    each.skein?.providerMetadata !== undefined;
  if (!has(message) && !message.content.some(has)) return { told: false, bare: message };
  const strip = <T extends { skein?: { providerMetadata?: unknown } }>(each: T): T =>
    has(each) ? { ...each, skein: { ...each.skein, providerMetadata: undefined } } : each;
  const content = message.content.map(strip);
  const { skein } = strip(message);
  return { told: true, bare: derive(message, { content, ...(skein === undefined ? {} : { skein }) }) };
}

/** Whether this very model said it, over the same wire format. */
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
      return { block: bare, kind: "signature_removed", note: "The signature of a text is of no use here." };
    }
    default: {
      if (block.thoughtSignature === undefined) return { block };
      if (isOwn && policy.thinking === "base64" && isBase64(block.thoughtSignature)) return { block };
      const { thoughtSignature: _, ...bare } = block;
      return { block: bare, kind: "signature_removed", note: "The signature of a call is of no use here." };
    }
  }
}

function normalizeOwnThinking(block: ThinkingBlock, { thinking }: TranscriptPolicy): Normalized {
  if (isReplayable(block, thinking)) return thinking === "plain" ? removeSignature(block) : { block };
  const note =
    thinking === "none"
      ? "This provider does not take thinking back."
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
    return { block: null, kind: "thinking_removed", note: "What another model thought does not go out." };
  }
  const text = { type: "text" as const, text: block.thinking };
  return { block: text, kind: "thinking_to_text", note: "What another model thought goes out as text." };
}

/** Whether a text is base64 with its padding, and not empty. Servers refuse signatures that are not. */
export function isBase64(text: string): boolean {
  return text.length > 0 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}

/** A reasoning item of the Responses API, as the signature of a thinking block holds it. */
interface ReasoningItem {
  readonly id: string;
  readonly encrypted_content: string;
}

/** `null`: the signature is none, or nothing that could be sent back without being stored there. */
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
