import type { LanguageModelV4ReasoningPart } from "@ai-sdk/provider";
import { isRecord } from "../../core/is-record.ts";
import type { ThinkingBlock } from "../../core/messages.ts";
import type { Api } from "../../transcript/contract.ts";
import type { Metadata } from "./metadata.ts";
import {
  fieldOf,
  mergeMetadata,
  metadataOf,
  ofProvider,
  optionsField,
  ownField,
  ownName,
  textFieldOf,
  without,
} from "./metadata.ts";

/**
 * Providers sign parts of an answer and require the signatures in later requests. Each package stores them under its
 * own name, but our blocks have a single field. If a provider has no field for a signature, the signature is kept
 * under our own name.
 */

/** The name under which a provider's package stores metadata. */
export const nameOfApi: Readonly<Partial<Record<Api, string>>> = {
  "anthropic-messages": "anthropic",
  "google-generative-ai": "google",
  "openai-responses": "openai",
};

/** A block's signature and its remaining metadata. */
interface Signed {
  readonly signature?: string;
  readonly redacted?: boolean;
  readonly rest: Metadata | undefined;
}

/** Reads the signature of a text or call. Google signs both. OpenAI Responses assigns an ID and a phase to text. */
export function signatureIn(metadata: Metadata | undefined, api: Api, kind: "text" | "call"): Signed {
  const own = textFieldOf(metadata, ownName, "signature");
  const rest = without(metadata, ownName, ["signature"]);
  if (api === "google-generative-ai") {
    const signature = own ?? textFieldOf(rest, "google", "thoughtSignature");
    const left = without(rest, "google", ["thoughtSignature"]);
    return signature === undefined ? { rest } : { signature, rest: left };
  }
  if (api === "openai-responses" && kind === "text") {
    const id = textFieldOf(rest, "openai", "itemId");
    if (id === undefined) return own === undefined ? { rest } : { signature: own, rest };
    const phase = textFieldOf(rest, "openai", "phase");
    const left = without(rest, "openai", phase === undefined ? ["itemId"] : ["itemId", "phase"]);
    return { signature: own ?? encodeTextSignature(id, phase), rest: left };
  }
  return own === undefined ? { rest } : { signature: own, rest };
}

/**
 * Writes a signature into metadata. A signature that would change when read back is also stored in full under our own
 * name.
 */
export function signatureOut(
  signature: string | undefined,
  rest: Metadata | undefined,
  api: Api,
  kind: "text" | "call",
): Metadata | undefined {
  if (signature === undefined) return rest;
  const metadata = mergeMetadata(rest, signatureMetadata(signature, api, kind));
  const isWhole = signatureIn(metadata, api, kind).signature === signature;
  return isWhole ? metadata : mergeMetadata(metadata, ofProvider(ownName, { signature }));
}

function signatureMetadata(signature: string, api: Api, kind: "text" | "call"): Metadata | undefined {
  if (api === "google-generative-ai") return ofProvider("google", { thoughtSignature: signature });
  if (api !== "openai-responses" || kind !== "text") return undefined;
  const { id, phase } = decodeTextSignature(signature);
  return ofProvider("openai", { itemId: id, phase });
}

/** Encodes a text signature for OpenAI Responses in pi's format. */
function encodeTextSignature(id: string, phase: string | undefined): string {
  return JSON.stringify({ v: 1, id, ...(phase === undefined ? {} : { phase }) });
}

/** Decodes a text signature. Older versions of pi wrote only the ID. */
function decodeTextSignature(signature: string): { id: string; phase?: string } {
  const value = tryParseJson(signature);
  if (!isRecord(value) || value.v !== 1 || typeof value.id !== "string") return { id: signature };
  return { id: value.id, ...(typeof value.phase === "string" ? { phase: value.phase } : {}) };
}

/** Returns `undefined` if the text is not JSON. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

type Part = LanguageModelV4ReasoningPart;

/**
 * Returns the parts of a thinking block. With OpenAI Responses, a block is a reasoning item with one part per summary.
 * Fields that would change when read back are also stored under our own name.
 */
export function partsOfThinking(block: ThinkingBlock, api: Api): Part[] {
  const rest = metadataOf(block.skein?.providerMetadata);
  const item = api === "openai-responses" ? itemOf(block.thinkingSignature) : null;
  const parts = item === null ? [signedPart(block, rest, api)] : itemParts(item, rest);
  const [first, ...others] = parts as [Part, ...Part[]];
  const again = thinkingOfParts(parts, api);
  const own = {
    signature: again.thinkingSignature === block.thinkingSignature ? undefined : block.thinkingSignature,
    redacted: again.redacted === block.redacted ? undefined : block.redacted,
    thinking: again.thinking === block.thinking ? undefined : block.thinking,
  };
  const { providerOptions, ...bare } = first;
  return [{ ...bare, ...optionsField(mergeMetadata(providerOptions, ofProvider(ownName, own))) }, ...others];
}

/** Returns the thinking block for one part, or for all parts of one reasoning item. */
export function thinkingOfParts(parts: readonly Part[], api: Api): ThinkingBlock {
  const [first] = parts as readonly [Part, ...Part[]];
  const ownFields = ["signature", "redacted", "thinking"];
  const own = {
    signature: textFieldOf(first.providerOptions, ownName, "signature"),
    redacted: fieldOf(first.providerOptions, ownName, "redacted"),
    thinking: textFieldOf(first.providerOptions, ownName, "thinking"),
  };
  const metadata = without(first.providerOptions, ownName, ownFields);
  const { signature, redacted, rest } =
    api === "openai-responses"
      ? { ...signedItem(parts, metadata), redacted: undefined }
      : signedThinking(metadata, api);
  const thinkingSignature = own.signature ?? signature;
  const isRedacted = typeof own.redacted === "boolean" ? own.redacted : redacted;
  return {
    type: "thinking",
    thinking: own.thinking ?? summariesOf(parts).join("\n\n"),
    ...(thinkingSignature === undefined ? {} : { thinkingSignature }),
    ...(isRedacted === undefined ? {} : { redacted: isRedacted }),
    ...ownField(rest),
  };
}

function summariesOf(parts: readonly Part[]): string[] {
  return parts.map(({ text }) => text).filter((text) => text !== "");
}

/** Whether a reasoning part belongs to the same item as the previous part. */
export function continuesItem(before: Part, part: Part): boolean {
  const id = itemIdOf(before);
  return (
    id !== undefined &&
    id === itemIdOf(part) &&
    fieldOf(part.providerOptions, ownName, "signature") === undefined
  );
}

/** Returns the item ID if the part has no other metadata. */
function itemIdOf({ providerOptions }: Part): string | undefined {
  const rest = without(without(providerOptions, "openai", ["itemId", "reasoningEncryptedContent"]), ownName, [
    "signature",
    "redacted",
    "thinking",
  ]);
  return rest === undefined ? textFieldOf(providerOptions, "openai", "itemId") : undefined;
}

/** Reads the signature of a thinking part. Anthropic signs or redacts thinking, and Google signs it. */
function signedThinking(metadata: Metadata | undefined, api: Api): Signed {
  const take = (name: string, field: string): Signed | null => {
    const signature = textFieldOf(metadata, name, field);
    return signature === undefined ? null : { signature, rest: without(metadata, name, [field]) };
  };
  if (api === "google-generative-ai") return take("google", "thoughtSignature") ?? { rest: metadata };
  if (api !== "anthropic-messages") return { rest: metadata };
  const hidden = take("anthropic", "redactedData");
  return (
    take("anthropic", "signature") ?? (hidden === null ? { rest: metadata } : { ...hidden, redacted: true })
  );
}

function signedPart(block: ThinkingBlock, rest: Metadata | undefined, api: Api): Part {
  const signature = block.thinkingSignature;
  const metadata =
    api === "google-generative-ai"
      ? ofProvider("google", { thoughtSignature: signature })
      : api === "anthropic-messages"
        ? ofProvider("anthropic", block.redacted === true ? { redactedData: signature } : { signature })
        : undefined;
  return { type: "reasoning", text: block.thinking, ...optionsField(mergeMetadata(rest, metadata)) };
}

/** An OpenAI Responses reasoning item. */
interface Item {
  readonly id: string;
  readonly summaries: readonly string[];
  /** `undefined` if the field is missing. */
  readonly encrypted: string | null | undefined;
}

/** Like pi, stores the whole item as JSON in the signature. */
function itemOf(signature: string | undefined): Item | null {
  const value = signature === undefined ? undefined : tryParseJson(signature);
  if (!isRecord(value) || value.type !== "reasoning" || typeof value.id !== "string") return null;
  const summary = Array.isArray(value.summary) ? value.summary : [];
  const texts = summary.map((each: unknown) => (isRecord(each) ? each.text : null));
  const { encrypted_content: encrypted } = value;
  return {
    id: value.id,
    summaries: texts.filter((text) => typeof text === "string"),
    encrypted: typeof encrypted === "string" || encrypted === null ? encrypted : undefined,
  };
}

/** Returns the item's parts. An item without a summary becomes one empty part. */
function itemParts({ id, summaries, encrypted }: Item, rest: Metadata | undefined): Part[] {
  const filled = summaries.filter((text) => text !== "");
  const metadata = mergeMetadata(
    rest,
    ofProvider("openai", { itemId: id, reasoningEncryptedContent: encrypted }),
  );
  const texts = filled.length === 0 ? [""] : filled;
  return texts.map((text) => ({ type: "reasoning", text, ...optionsField(metadata) }));
}

function signedItem(parts: readonly Part[], metadata: Metadata | undefined): Signed {
  const id = textFieldOf(metadata, "openai", "itemId");
  if (id === undefined) return { rest: metadata };
  const contents = parts.map(({ providerOptions }) =>
    fieldOf(providerOptions, "openai", "reasoningEncryptedContent"),
  );
  // In a stream, the last part contains the encrypted content.
  const encrypted =
    contents.findLast((each) => typeof each === "string") ?? contents.find((each) => each === null);
  const isKept = encrypted === undefined || encrypted === null || typeof encrypted === "string";
  const item = {
    type: "reasoning",
    id,
    summary: summariesOf(parts).map((text) => ({ type: "summary_text", text })),
    ...(encrypted === undefined || !isKept ? {} : { encrypted_content: encrypted }),
  };
  const taken = isKept ? ["itemId", "reasoningEncryptedContent"] : ["itemId"];
  return { signature: JSON.stringify(item), rest: without(metadata, "openai", taken) };
}
