import type { Refusal } from "../contract.ts";
import { isFields } from "../openai-shared-values.ts";
import type { Place } from "./errors.ts";
import { extraField, missing, unknownTag, wrongType } from "./errors.ts";

/** Each kind of chunk with its fields; the first is the one that it must have (API reference, ContentChunk). */
const kinds: Readonly<Record<string, readonly string[]>> = {
  text: ["text"],
  image_url: ["image_url"],
  document_url: ["document_url", "document_name"],
  reference: ["reference_ids"],
  file: ["file_id"],
  input_audio: ["input_audio"],
  thinking: ["thinking", "closed"],
};
const types = Object.keys(kinds);
const known = new Map(Object.entries(kinds).map(([type, names]) => [type, new Set(["type", ...names])]));

export function checkChunks(chunks: readonly unknown[], loc: Place): Refusal | null {
  for (const [index, chunk] of chunks.entries()) {
    const wrong = checkChunk(chunk, [...loc, index]);
    if (wrong !== null) return wrong;
  }
  return null;
}

function checkChunk(chunk: unknown, loc: Place): Refusal | null {
  if (!isFields(chunk)) return wrongType(loc, "dictionary", chunk, "bad_chunk");
  const { type } = chunk;
  const fields = typeof type === "string" ? known.get(type) : undefined;
  if (typeof type !== "string" || fields === undefined)
    return unknownTag(loc, "type", type, types, "bad_chunk");
  const name = kinds[type]?.[0] ?? type;
  const value = chunk[name];
  const place = [...loc, type];
  if (value === undefined) return missing([...place, name], chunk, "bad_chunk");
  return extraField(place, chunk, fields) ?? checkValue(type, value, [...place, name]);
}

function checkValue(type: string, value: unknown, loc: Place): Refusal | null {
  switch (type) {
    case "text":
      return typeof value === "string" ? null : wrongType(loc, "string", value, "bad_chunk");
    case "image_url": {
      const url = isFields(value) ? value.url : value;
      return typeof url === "string" ? null : wrongType(loc, "string", url, "bad_chunk");
    }
    case "thinking":
      return checkThinking(value, loc);
    default:
      return null;
  }
}

/** "`thinking`: list of text and reference chunks" (API reference, ThinkChunk; Reasoning guide). */
function checkThinking(value: unknown, loc: Place): Refusal | null {
  if (!Array.isArray(value)) return wrongType(loc, "list", value, "bad_chunk");
  for (const [index, each] of value.entries()) {
    const place = [...loc, index];
    if (!isFields(each)) return wrongType(place, "dictionary", each, "bad_chunk");
    if (each.type === "reference") continue;
    if (each.type !== "text") return unknownTag(place, "type", each.type, ["text", "reference"], "bad_chunk");
    if (typeof each.text !== "string") return wrongType([...place, "text"], "string", each.text, "bad_chunk");
  }
  return null;
}
