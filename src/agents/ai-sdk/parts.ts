import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { ImageBlock, TextBlock } from "../../core/messages.ts";
import { isRecord } from "../../core/shape.ts";
import { isBase64 } from "../../core/text.ts";
import type { Api } from "../../transcript/contract.ts";
import { nameOfApi } from "./signatures.ts";

/**
 * Parts that our format has no block for. They are kept whole: where others read the content by a text that stands in
 * for them, in an answer as a block of a type of its own, which everybody passes by.
 */

export const partBlockType = "skein.part";

export type AssistantPart = Extract<LanguageModelV4Prompt[number], { role: "assistant" }>["content"][number];
/** What an answer may hold that no request does. */
export interface ResponseOnlyPart {
  readonly type: "source" | "tool-approval-request";
}

type Fields = Readonly<Record<string, unknown>>;

/** A block of an answer that holds a part as it is. */
export interface PartBlock {
  readonly type: typeof partBlockType;
  readonly skein: { readonly part: Fields };
}

export function partBlock(part: object): PartBlock {
  return { type: partBlockType, skein: { part: storable(part) } };
}

export function heldPart(block: { readonly type: string }): Fields | null {
  const { skein } = block as { skein?: unknown };
  if (block.type !== partBlockType || !isRecord(skein) || !isRecord(skein.part)) return null;
  return skein.part;
}

/** A text that others can read, and that stands in for a file. */
export function standInBlock(part: object): TextBlock {
  const kept = storable(part);
  return { type: "text", text: standInText(kept), skein: { part: { ...kept } } };
}

/** The part that a text stands in for; `null` where it is a text like others, or somebody changed it. */
export function stoodInFor(block: TextBlock): Fields | null {
  const part = block.skein?.part;
  return part !== undefined && block.text === standInText(part) ? part : null;
}

function standInText(part: Fields): string {
  const data = isRecord(part.data) ? part.data : {};
  const name = typeof part.filename === "string" ? ` ${part.filename}` : "";
  const place = typeof data.url === "string" && !data.url.startsWith("data:") ? ` at ${data.url}` : "";
  return part.type === "file"
    ? `[file${name}: ${String(part.mediaType)}${place}]`
    : `[${String(part.type)} part]`;
}

/** As JSON can hold it: bytes in base64, addresses as text. */
function storable(part: object): Fields {
  const { data } = part as { data?: unknown };
  const fields = Object.entries(part).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(fields), ...(isRecord(data) ? { data: storableData(data) } : {}) };
}

function storableData(data: Fields): Fields {
  if (data.type === "url") return { ...data, url: String(data.url) };
  return data.type === "data" ? { ...data, data: base64Of(data.data) } : data;
}

/** The base64 of whatever the SDK takes for bytes; a text is base64 already. */
export function base64Of(data: unknown): string {
  if (typeof data === "string") return data;
  if (data instanceof ArrayBuffer) return Buffer.from(data).toString("base64");
  if (!ArrayBuffer.isView(data)) return "";
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

/** The part as the SDK has it; `null` where its address cannot be read any more. */
export function revived(part: Fields): Fields | null {
  const { data } = part;
  if (!isRecord(data) || data.type !== "url") return part;
  return URL.canParse(String(data.url))
    ? { ...part, data: { ...data, url: new URL(String(data.url)) } }
    : null;
}

/** An image whose bytes we have is a block of our format. */
export function imageBlockOf(part: {
  readonly data: unknown;
  readonly mediaType: string;
  readonly filename?: string | undefined;
}): Omit<ImageBlock, "skein"> | null {
  const { data, mediaType } = part;
  if (!isRecord(data) || data.type !== "data" || !/^image(\/|$)/i.test(mediaType)) return null;
  return { type: "image", data: base64Of(data.data), mimeType: mediaType };
}

/**
 * Whether a provider takes a file in this place; elsewhere its package refuses the whole request, or drops it. Files
 * pass no step of the pipeline, so what is broken is found here.
 */
export function takesFile(part: Fields, api: Api, place: "user" | "result"): boolean {
  if (part.type !== "file" || typeof part.mediaType !== "string" || !isRecord(part.data)) return false;
  if (!isSound(part.data, part.mediaType)) return false;
  const { mediaType, data } = part;
  const isImage = /^image(\/|$)/.test(mediaType);
  const isPdf = mediaType === "application/pdf";
  const isPlain = mediaType === "text/plain";
  const byApi = {
    "anthropic-messages": {
      data: isPdf || (isPlain && place === "user"),
      url: isImage || isPdf,
      text: place === "user",
    },
    "google-generative-ai": {
      // An image with its bytes is a block of ours, and has been looked at as one.
      data: googleTakes.test(mediaType) && !isImage,
      url: googleTakes.test(mediaType) && place === "user",
      text: place === "user",
    },
    "openai-responses": { data: isPdf, url: isImage || isPdf, text: false },
    "openai-completions": { data: isPdf && place === "user", url: isImage && place === "user", text: false },
    "mistral-conversations": {
      data: isPdf && place === "user",
      url: (isImage || isPdf) && place === "user",
      text: false,
    },
  }[api];
  switch (data.type) {
    case "data":
    case "url":
    case "text":
      return byApi[data.type];
    case "reference": {
      const name = nameOfApi[api];
      const isOurs = isRecord(data.reference) && name !== undefined && Object.hasOwn(data.reference, name);
      return isOurs && place === "user";
    }
    default:
      return false;
  }
}

/** What Gemini reads (documentation, "File input methods"): no GIF, and nothing that is of no such type. */
const googleTakes =
  /^(image\/(png|jpeg|webp|heic|heif)|application\/(pdf|json|rtf|xml)|text\/[\w.+-]+|(audio|video)\/[\w.+-]+)$/;

/** Whether there is something in it, and it is what it says as far as that can be seen. */
function isSound(data: Fields, mediaType: string): boolean {
  switch (data.type) {
    case "data":
      if (typeof data.data !== "string" || !isBase64(data.data)) return false;
      return mediaType !== "text/plain" || /\S/.test(Buffer.from(data.data, "base64").toString());
    case "text":
      return typeof data.text === "string" && /\S/.test(data.text);
    case "url":
      return /^(https?|gs):\/\/\S+$/i.test(String(data.url));
    default:
      return true;
  }
}

/** Whether a provider's package sends this part of an answer back. */
export function takesBack(part: Fields, api: Api): boolean {
  switch (part.type) {
    case "file":
    case "reasoning-file":
      return api === "google-generative-ai" && isRecord(part.data) && part.data.type === "data";
    case "custom":
      return String(part.kind).startsWith(`${nameOfApi[api]}.`);
    case "tool-call":
    case "tool-result":
      return api === "anthropic-messages" || api === "google-generative-ai";
    default:
      return false;
  }
}
