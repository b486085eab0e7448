import { stringifyJson } from "../core/json.ts";
import type { SessionTree } from "../core/tree.ts";
import type { BlobOf } from "./inline-blobs.ts";
import { inlineBlobs, noBlobs } from "./inline-blobs.ts";
import type { JsonObject } from "./json-lines.ts";
import { objectField, parseObject } from "./json-lines.ts";

/**
 * A session as a file that pi opens too: the header, then every entry of every branch, line by line, blobs inlined.
 * Of a compacted session hand over the whole log, not the working set.
 */
export function* exportJsonl(tree: SessionTree, blobOf: BlobOf = noBlobs): Generator<string> {
  for (const line of tree.encodeLines()) yield line.includes('"blob"') ? withBlobs(line, blobOf) : line;
}

function withBlobs(line: string, blobOf: BlobOf): string {
  const entry = parseObject(line) ?? {};
  const changed = {
    ...inlinedIn(entry, "message", blobOf),
    ...inlinedIn(entry, "replacement", blobOf),
    ...(entry.type === "custom_message" ? inlinedContent(entry, blobOf) : {}),
  };
  return Object.keys(changed).length === 0 ? line : `${stringifyJson({ ...entry, ...changed })}\n`;
}

/** The field whose content has blobs, with them inlined; nothing when it has none. */
function inlinedIn(entry: JsonObject, field: string, blobOf: BlobOf): object {
  const holder = objectField(entry, field);
  const content = holder === null ? {} : inlinedContent(holder, blobOf);
  return Object.keys(content).length === 0 ? {} : { [field]: { ...holder, ...content } };
}

function inlinedContent(holder: JsonObject, blobOf: BlobOf): object {
  const { content } = holder;
  if (!Array.isArray(content)) return {};
  const inlined = inlineBlobs(content, blobOf);
  return inlined === content ? {} : { content: inlined };
}
