import type { LanguageModelV4Prompt, LanguageModelV4ToolResultOutput } from "@ai-sdk/provider";
import { isRecord } from "../../core/is-record.ts";
import type { Content, ImageBlock, TextBlock } from "../../core/messages.ts";
import { isBase64 } from "../../core/text.ts";
import type { Api } from "../../transcript/contract.ts";
import { toWellFormedJson } from "../../transcript/steps/normalize-context.ts";
import type { Report } from "./metadata.ts";
import { metadataOf, optionsField, ownField } from "./metadata.ts";
import { nameOfApi } from "./signatures.ts";

const partBlockType = "skein.part";

export type AssistantPart = Extract<LanguageModelV4Prompt[number], { role: "assistant" }>["content"][number];
/** Parts that occur in answers but not in requests. */
export interface ResponseOnlyPart {
  readonly type: "source" | "tool-approval-request";
}

type Fields = Readonly<Record<string, unknown>>;

/** An answer part that our format has no block for, kept unchanged. Other readers of the file skip it. */
interface PartBlock {
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

/** Returns readable text that stands in for a part. The part itself is stored in the same block. */
function standInBlock(part: object): TextBlock {
  const kept = storable(part);
  return { type: "text", text: standInText(kept), skein: { part: { ...kept } } };
}

/** Returns the part that a stand-in text represents, or `null` for ordinary or edited text. */
function replacedPart(block: TextBlock): Fields | null {
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

/** Converts a part to JSON: bytes as base64, URLs as text. */
function storable(part: object): Fields {
  const { data } = part as { data?: unknown };
  const fields = Object.entries(part).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(fields), ...(isRecord(data) ? { data: storableData(data) } : {}) };
}

function storableData(data: Fields): Fields {
  if (data.type === "url") return { ...data, url: String(data.url) };
  return data.type === "data" ? { ...data, data: base64Of(data.data) } : data;
}

/** Returns the base64 encoding of any value that the AI SDK accepts as bytes. A string is already base64. */
export function base64Of(data: unknown): string {
  if (typeof data === "string") return data;
  if (data instanceof ArrayBuffer) return Buffer.from(data).toString("base64");
  if (!ArrayBuffer.isView(data)) return "";
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

/** Returns the part as the AI SDK expects it, or `null` if its URL is invalid. */
export function restorePart(part: Fields): Fields | null {
  const { data } = part;
  if (!isRecord(data) || data.type !== "url") return part;
  return URL.canParse(String(data.url))
    ? { ...part, data: { ...data, url: new URL(String(data.url)) } }
    : null;
}

/** Returns the image block for a file part that contains its bytes, or `null` for any other file. */
function imageBlockOf(part: {
  readonly data: unknown;
  readonly mediaType: string;
  readonly filename?: string | undefined;
}): Omit<ImageBlock, "skein"> | null {
  const { data, mediaType } = part;
  if (!isRecord(data) || data.type !== "data" || !/^image(\/|$)/i.test(mediaType)) return null;
  return { type: "image", data: base64Of(data.data), mimeType: mediaType };
}

/**
 * Whether a provider accepts a file in this position. If it does not, its package would reject the whole request or
 * drop the file. No transcript step checks files, so damaged files are detected here.
 */
function takesFile(part: Fields, api: Api, place: "user" | "result"): boolean {
  if (part.type !== "file" || typeof part.mediaType !== "string" || !isRecord(part.data)) return false;
  if (!isReadable(part.data, part.mediaType)) return false;
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
      // Inline images become image blocks, which are checked elsewhere.
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

/** The types that Gemini reads (see "File input methods" in its documentation). */
const googleTakes =
  /^(image\/(png|jpeg|webp|heic|heif)|application\/(pdf|json|rtf|xml)|text\/[\w.+-]+|(audio|video)\/[\w.+-]+)$/;

/** Whether a file is non-empty and has a valid encoding. */
function isReadable(data: Fields, mediaType: string): boolean {
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

/** Whether a provider accepts this answer part in a later request. */
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

type ResultPart = Extract<LanguageModelV4ToolResultOutput, { type: "content" }>["value"][number];
type TextPart = Extract<ResultPart, { type: "text" }>;
type FilePart = Extract<ResultPart, { type: "file" }>;
type Block = TextBlock | ImageBlock;

export function resultPartsOf(content: Content, api: Api, report: Report): ResultPart[] {
  return partsOf(content, api, "result", report);
}

export function userPartsOf(content: Content, api: Api, report: Report): (TextPart | FilePart)[] {
  return partsOf(content, api, "user", report).filter((part) => part.type !== "custom");
}

function partsOf(content: Content, api: Api, place: "user" | "result", report: Report): ResultPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.flatMap((block) => {
    switch (block.type) {
      case "text":
        return [acceptedPart(block, api, place) ?? textPart(block)];
      case "image":
        return [filePart(block)];
      default:
        report(notSent((block as { type: string }).type, "user's or a tool's"));
        return [];
    }
  });
}

function textPart(block: TextBlock): TextPart {
  return { type: "text", text: block.text, ...optionsField(metadataOf(block.skein?.providerMetadata)) };
}

function filePart(block: ImageBlock): FilePart {
  const { filename, providerMetadata } = block.skein ?? {};
  return {
    type: "file",
    data: { type: "data", data: block.data },
    mediaType: block.mimeType,
    ...(filename === undefined ? {} : { filename }),
    ...optionsField(metadataOf(providerMetadata)),
  };
}

/** Returns the part that a stand-in text represents if this provider accepts it. */
function acceptedPart(block: TextBlock, api: Api, place: "user" | "result"): ResultPart | null {
  const part = replacedPart(block);
  if (part === null) return null;
  const isCustom = part.type === "custom" && place === "result" && api === "anthropic-messages";
  if (!isCustom && !takesFile(part, api, place)) return null;
  return restorePart(toWellFormedJson(part) as typeof part) as ResultPart | null;
}

export function blocksOfContent(parts: readonly ResultPart[]): Block[] {
  return parts.map((part) => {
    if (part.type === "text") return { type: "text", text: part.text, ...ownField(part.providerOptions) };
    const image = part.type === "file" ? imageBlockOf(part) : null;
    if (image === null || part.type !== "file") return standInBlock(part);
    const skein = {
      ...(part.filename === undefined ? {} : { filename: part.filename }),
      ...(part.providerOptions === undefined ? {} : { providerMetadata: part.providerOptions }),
    };
    return { ...image, ...(Object.keys(skein).length === 0 ? {} : { skein }) };
  });
}

export function notSent(type: string, whose: string): Parameters<Report>[0] {
  const note = `A part of type ${type} in a ${whose} message cannot be sent to this provider.`;
  return { step: "toModelMessages", kind: "part_not_sent", note };
}
