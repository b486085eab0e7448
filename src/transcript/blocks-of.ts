import type { TextBlock } from "../core/messages.ts";

/** A content as blocks. */
export function blocksOf<B>(content: string | readonly B[]): readonly (B | TextBlock)[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
