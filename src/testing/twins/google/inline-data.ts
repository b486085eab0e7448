import type { Fields } from "../fields.ts";
import { fieldsOf, listOf } from "../fields.ts";
import type { Content } from "./contents.ts";

/** Bytes in a request, and where they stand. */
export interface PlacedData {
  readonly place: string;
  readonly blob: Fields;
}

/** All of it: in parts, and inside functions' responses. */
export function inlineDataOf(contents: readonly Content[]): readonly PlacedData[] {
  const found: PlacedData[] = [];
  for (const { index, parts } of contents) {
    for (const [at, { kind, fields }] of parts.entries()) {
      const place = `contents[${index}].parts[${at}]`;
      if (kind === "inlineData")
        found.push({ place: `${place}.inline_data`, blob: fieldsOf(fields.inlineData) ?? {} });
      if (kind !== "functionResponse") continue;
      for (const [inner, part] of (listOf(fieldsOf(fields.functionResponse)?.parts) ?? []).entries()) {
        const blob = fieldsOf(fieldsOf(part)?.inlineData);
        if (blob === null) continue;
        found.push({ place: `${place}.function_response.parts[${inner}].inline_data`, blob });
      }
    }
  }
  return found;
}
