import type { LanguageModelV4ReasoningPart } from "@ai-sdk/provider";
import type { ThinkingBlock } from "../../core/messages.ts";
import { isRecord } from "../../core/shape.ts";
import type { Api } from "../../transcript/contract.ts";
import type { Metadata } from "./metadata.ts";
import {
  fieldOf,
  joined,
  metadataOf,
  ofProvider,
  optionsField,
  ownField,
  ownName,
  textFieldOf,
  without,
} from "./metadata.ts";

/**
 * A model signs what it says, so that it can take it back: each provider's package keeps that under a name of its own,
 * our format in one field of the block. A signature that the provider has no name for travels under ours.
 */

/** The name that a provider's package keeps its metadata under. */
export const nameOfApi: Readonly<Partial<Record<Api, string>>> = {
  "anthropic-messages": "anthropic",
  "google-generative-ai": "google",
  "openai-responses": "openai",
};

/** A block's signature, and what else was said of it. */
interface Signed {
  readonly signature?: string;
  readonly redacted?: boolean;
  readonly rest: Metadata | undefined;
}

/** The signature of a text or of a call: Google signs both, Responses gives a text an id and a phase. */
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

/** The same back. What comes in again as another signature is sent along whole, under our name. */
export function signatureOut(
  signature: string | undefined,
  rest: Metadata | undefined,
  api: Api,
  kind: "text" | "call",
): Metadata | undefined {
  if (signature === undefined) return rest;
  const metadata = joined(rest, signatureMetadata(signature, api, kind));
  const isWhole = signatureIn(metadata, api, kind).signature === signature;
  return isWhole ? metadata : joined(metadata, ofProvider(ownName, { signature }));
}

function signatureMetadata(signature: string, api: Api, kind: "text" | "call"): Metadata | undefined {
  if (api === "google-generative-ai") return ofProvider("google", { thoughtSignature: signature });
  if (api !== "openai-responses" || kind !== "text") return undefined;
  const { id, phase } = decodeTextSignature(signature);
  return ofProvider("openai", { itemId: id, phase });
}

/** As pi writes it for Responses. */
function encodeTextSignature(id: string, phase: string | undefined): string {
  return JSON.stringify({ v: 1, id, ...(phase === undefined ? {} : { phase }) });
}

/** Older versions of pi wrote the id alone. */
function decodeTextSignature(signature: string): { id: string; phase?: string } {
  const value = parsed(signature);
  if (!isRecord(value) || value.v !== 1 || typeof value.id !== "string") return { id: signature };
  return { id: value.id, ...(typeof value.phase === "string" ? { phase: value.phase } : {}) };
}

/** JSON, or `undefined` where it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Thinking, both ways. On Responses a block is a reasoning item, of which the SDK makes a part for each summary. */

type Part = LanguageModelV4ReasoningPart;

/** The parts of one thinking block; what would come back otherwise is sent along as it is, under our name. */
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
  return [{ ...bare, ...optionsField(joined(providerOptions, ofProvider(ownName, own))) }, ...others];
}

/** The block of parts that belong together: one, or those of one item. */
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
    thinking: own.thinking ?? saidIn(parts).join("\n\n"),
    ...(thinkingSignature === undefined ? {} : { thinkingSignature }),
    ...(isRedacted === undefined ? {} : { redacted: isRedacted }),
    ...ownField(rest),
  };
}

/** An empty summary says nothing. */
function saidIn(parts: readonly Part[]): string[] {
  return parts.map(({ text }) => text).filter((text) => text !== "");
}

/** Whether a reasoning part goes on with the item of the one before it. */
export function continuesItem(before: Part, part: Part): boolean {
  const id = itemIdOf(before);
  return (
    id !== undefined &&
    id === itemIdOf(part) &&
    fieldOf(part.providerOptions, ownName, "signature") === undefined
  );
}

/** The item that a part is nothing but a summary of. */
function itemIdOf({ providerOptions }: Part): string | undefined {
  const rest = without(without(providerOptions, "openai", ["itemId", "reasoningEncryptedContent"]), ownName, [
    "signature",
    "redacted",
    "thinking",
  ]);
  return rest === undefined ? textFieldOf(providerOptions, "openai", "itemId") : undefined;
}

/** Anthropic signs thinking, or hides it as a whole; Google signs it. */
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
  return { type: "reasoning", text: block.thinking, ...optionsField(joined(rest, metadata)) };
}

/** A reasoning item of Responses. */
interface Item {
  readonly id: string;
  readonly summaries: readonly string[];
  /** `undefined`: it says nothing of it. */
  readonly encrypted: string | null | undefined;
}

/** Pi keeps the whole item as JSON in the signature. */
function itemOf(signature: string | undefined): Item | null {
  const value = signature === undefined ? undefined : parsed(signature);
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

/** An item without a summary is one empty part. */
function itemParts({ id, summaries, encrypted }: Item, rest: Metadata | undefined): Part[] {
  const said = summaries.filter((text) => text !== "");
  const metadata = joined(rest, ofProvider("openai", { itemId: id, reasoningEncryptedContent: encrypted }));
  const texts = said.length === 0 ? [""] : said;
  return texts.map((text) => ({ type: "reasoning", text, ...optionsField(metadata) }));
}

function signedItem(parts: readonly Part[], metadata: Metadata | undefined): Signed {
  const id = textFieldOf(metadata, "openai", "itemId");
  if (id === undefined) return { rest: metadata };
  const contents = parts.map(({ providerOptions }) =>
    fieldOf(providerOptions, "openai", "reasoningEncryptedContent"),
  );
  // The last part has it where the item was streamed.
  const encrypted =
    contents.findLast((each) => typeof each === "string") ?? contents.find((each) => each === null);
  const isKept = encrypted === undefined || encrypted === null || typeof encrypted === "string";
  const item = {
    type: "reasoning",
    id,
    summary: saidIn(parts).map((text) => ({ type: "summary_text", text })),
    ...(encrypted === undefined || !isKept ? {} : { encrypted_content: encrypted }),
  };
  const taken = isKept ? ["itemId", "reasoningEncryptedContent"] : ["itemId"];
  return { signature: JSON.stringify(item), rest: without(metadata, "openai", taken) };
}
