import { readImageHeader } from "../core/image-header.ts";
import { stringifyJson } from "../core/json.ts";
import type { AssistantBlock, Content, TextBlock } from "../core/messages.ts";
import type { TranscriptMessage } from "./contract.ts";
import { longestSide } from "./policy.ts";
import { textTokens } from "./text-tokens.ts";
import type { Vocabulary } from "./token-rates.ts";

/** About what a request's messages come to in tokens, where no provider has counted them. */

const tokensPerMessage = 4;
/** An image whose size cannot be seen: one of 1,200 × 750. */
const tokensPerImage = 1200;
const pixelsPerToken = 750;
/** Of base64. The size of a JPEG stands behind its thumbnail and its colour profile. */
const headerCharacters = 128 * 1024;

export function estimateTokens(messages: readonly TranscriptMessage[], vocabulary?: Vocabulary): number {
  let tokens = 0;
  for (const { content } of messages) tokens += tokensPerMessage + contentTokens(content, vocabulary);
  return tokens;
}

function contentTokens(
  content: Content | readonly AssistantBlock[],
  vocabulary: Vocabulary | undefined,
): number {
  if (typeof content === "string") return textTokens(content, vocabulary);
  let tokens = 0;
  for (const block of content) tokens += blockTokens(block, vocabulary);
  return tokens;
}

function blockTokens(
  block: AssistantBlock | Exclude<Content, string>[number],
  vocabulary: Vocabulary | undefined,
): number {
  switch (block.type) {
    case "text":
      return isImageBlob(block) ? tokensPerImage : textTokens(block.text, vocabulary);
    case "thinking":
      return textTokens(block.thinking, vocabulary);
    case "toolCall":
      return textTokens(`${block.name}${stringifyJson(block.arguments ?? {})}`, vocabulary);
    case "image":
      return imageTokens(block.data);
    default:
      return 0;
  }
}

/** It is loaded before it is sent. */
function isImageBlob({ skein }: TextBlock): boolean {
  return skein?.blob?.was === "image";
}

function imageTokens(data: string): number {
  const header = readImageHeader(Buffer.from(data.slice(0, headerCharacters), "base64"));
  if (header === null) return tokensPerImage;
  const { width, height } = header;
  const scale = Math.min(1, longestSide / Math.max(width, height));
  return Math.ceil((width * scale * (height * scale)) / pixelsPerToken);
}
