import type { LanguageModelV4ToolResultOutput } from "@ai-sdk/provider";
import type { Content, ImageBlock, TextBlock } from "../../core/messages.ts";
import type { Api } from "../../transcript/contract.ts";
import { toWellFormedJson } from "../../transcript/steps/read-context.ts";
import type { Report } from "./metadata.ts";
import { metadataOf, optionsField, ownField } from "./metadata.ts";
import { imageBlockOf, revived, standInBlock, stoodInFor, takesFile } from "./parts.ts";

/** The content of users and of tool results, block by part and back. */

type ResultPart = Extract<LanguageModelV4ToolResultOutput, { type: "content" }>["value"][number];
type TextPart = Extract<ResultPart, { type: "text" }>;
type FilePart = Extract<ResultPart, { type: "file" }>;
type Block = TextBlock | ImageBlock;

export function contentPartsOf(content: Content, api: Api, report: Report): ResultPart[] {
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
        return [heldIn(block, api, place) ?? textPart(block)];
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

/** The part that a text stands in for, where this provider takes it; else the text goes out. */
function heldIn(block: TextBlock, api: Api, place: "user" | "result"): ResultPart | null {
  const part = stoodInFor(block);
  if (part === null) return null;
  const isCustom = part.type === "custom" && place === "result" && api === "anthropic-messages";
  if (!isCustom && !takesFile(part, api, place)) return null;
  return revived(toWellFormedJson(part) as typeof part) as ResultPart | null;
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
  const note = `A part of the type ${type} in a ${whose} message cannot be sent to this provider.`;
  return { step: "toModelMessages", kind: "part_not_sent", note };
}
