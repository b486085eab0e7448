import { stringifyJson } from "../core/json.ts";
import type { SessionTree } from "../core/tree.ts";
import type { ReadBlob } from "./export-view.ts";
import { inlineBlobs, noBlobs } from "./export-view.ts";
import type { JsonObject } from "./json-lines.ts";
import { objectField, parseObject } from "./json-lines.ts";

/**
 * Exports a session in the file format itself, which pi opens too: the header, then every entry of every branch, with
 * blobs inlined. Pass the whole log of a compacted session, not its working set.
 */
export function* exportJsonl(tree: SessionTree, readBlob: ReadBlob = noBlobs): Generator<string> {
  for (const line of tree.encodeLines())
    yield line.includes('"blob"') ? inlineLineBlobs(line, readBlob) : line;
}

function inlineLineBlobs(line: string, readBlob: ReadBlob): string {
  const entry = parseObject(line) ?? {};
  const changed: Record<string, unknown> = {};
  for (const field of ["message", "replacement"]) {
    const holder = objectField(entry, field);
    const content = holder === null ? null : inlinedContent(holder, readBlob);
    if (content !== null) changed[field] = { ...holder, content };
  }
  const content = entry.type === "custom_message" ? inlinedContent(entry, readBlob) : null;
  if (content !== null) changed.content = content;
  return Object.keys(changed).length === 0 ? line : `${stringifyJson({ ...entry, ...changed })}\n`;
}

/** `null` when there is nothing to inline. */
function inlinedContent({ content }: JsonObject, readBlob: ReadBlob): unknown {
  if (!Array.isArray(content)) return null;
  const inlined = inlineBlobs(content, readBlob);
  return inlined === content ? null : inlined;
}
