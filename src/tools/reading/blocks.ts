import { isRecord } from "../../core/shape.ts";

/** What the blocks of messages are, to somebody who reads them through a tool. */

const toolRoles = new Set(["toolResult", "tool"]);
const toolBlocks = new Set(["toolCall", "toolResult", "tool_use", "tool_result"]);
const binaryTypes = new Set(["image", "audio", "file", "document", "base64", "redacted_thinking"]);
const mimeNames = ["mimeType", "mediaType", "media_type"];

type Fields = Readonly<Record<string, unknown>>;

export function isToolBlock(block: unknown): boolean {
  return isRecord(block) && typeof block.type === "string" && toolBlocks.has(block.type);
}

/** A tool's result, or an answer that says nothing and only calls tools. */
export function isToolMessage(message: Fields): boolean {
  const { role, content, errorMessage } = message;
  if (typeof role === "string" && toolRoles.has(role)) return true;
  if (!Array.isArray(content) || errorMessage !== undefined || !content.some(isToolBlock)) return false;
  return content.every((block) => isToolBlock(block) || isBlank(block));
}

/** A text or thought without a word in it. */
function isBlank(block: unknown): boolean {
  if (!isRecord(block) || (block.type !== "text" && block.type !== "thinking")) return false;
  const said = block.type === "text" ? block.text : block.thinking;
  return typeof said === "string" && said.trim() === "";
}

/** Whether `data` of a block is bytes as base64, and no text. */
export function isBinary(block: Fields): boolean {
  const { type, data } = block;
  if (typeof data !== "string") return false;
  const isOfType = typeof type === "string" && binaryTypes.has(type);
  return isOfType || mimeNames.some((name) => typeof block[name] === "string");
}

/** An image that lives in a blob, as the image that it was; `null`: it is none. */
export function omitted({ type, skein }: Fields): Fields | null {
  const blob = type === "text" && isRecord(skein) ? skein.blob : null;
  if (!isRecord(blob) || blob.was !== "image" || typeof blob.mimeType !== "string") return null;
  const mimeType = blob.mimeType.slice(0, 100);
  return { type: "image", mimeType, omitted: true, bytes: Number(blob.bytes) || 0 };
}
