import type { Content, ImageBlock, TextBlock } from "../../core/messages.ts";

/** A content as blocks. */
export function blocksOf(content: Content): readonly (TextBlock | ImageBlock)[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
