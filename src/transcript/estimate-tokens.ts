import { stringifyJson } from "../core/json.ts";
import type { AssistantBlock, Content } from "../core/messages.ts";
import type { VisibleMessage } from "./visible.ts";

/** About what a request's messages come to in tokens, where no provider has counted them. */

const tokensPerMessage = 4;
const tokensPerImage = 1200;
/** Scripts whose characters are about a token each. */
const wide = /[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]/g;
const charactersPerToken = 4;

export function estimateTokens(messages: readonly VisibleMessage[]): number {
  return messages.reduce((sum, { content }) => sum + tokensPerMessage + contentTokens(content), 0);
}

export function textTokens(text: string): number {
  const dense = text.match(wide)?.length ?? 0;
  return dense + Math.ceil((text.length - dense) / charactersPerToken);
}

function contentTokens(content: Content | readonly AssistantBlock[]): number {
  if (typeof content === "string") return textTokens(content);
  return content.reduce((sum, block) => sum + blockTokens(block), 0);
}

function blockTokens(block: AssistantBlock | Exclude<Content, string>[number]): number {
  switch (block.type) {
    case "text":
      return textTokens(block.text);
    case "thinking":
      return textTokens(block.thinking);
    case "toolCall":
      return textTokens(`${block.name}${stringifyJson(block.arguments ?? {})}`);
    case "image":
      return tokensPerImage;
    default:
      return 0;
  }
}
