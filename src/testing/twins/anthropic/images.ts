import type { Fields } from "../fields.ts";
import { fieldsOf, listOf } from "../fields.ts";
import type { Turn } from "./turns.ts";
import { placeOf } from "./turns.ts";

/** An image of a request, and where it stands. */
export interface PlacedImage {
  readonly place: string;
  readonly source: Fields | null;
}

/** All images: a user's, and those of tools' results. */
export function imagesOf(turns: readonly Turn[]): readonly PlacedImage[] {
  const images: PlacedImage[] = [];
  for (const turn of turns) {
    for (const [index, { type, fields }] of turn.blocks.entries()) {
      if (type !== "image" && type !== "tool_result") continue;
      const place = placeOf(turn, index);
      if (type === "image") images.push({ place: `${place}.image`, source: fieldsOf(fields.source) });
      for (const [inner, each] of (listOf(fields.content) ?? []).entries()) {
        const block = fieldsOf(each);
        if (block?.type !== "image") continue;
        images.push({ place: `${place}.tool_result.content.${inner}.image`, source: fieldsOf(block.source) });
      }
    }
  }
  return images;
}
