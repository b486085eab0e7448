import { stringifyJson } from "../core/json.ts";
import type { SessionTree } from "../core/tree.ts";
import type { ReadBlob } from "./export-view.ts";
import { inlineBlobs, noBlobs } from "./export-view.ts";
import type { JsonObject } from "./json-lines.ts";
import { objectField, parseObject } from "./json-lines.ts";

/**
 * Exports a session in Skein's own file format, which pi can also open. The header is followed by every entry on every
 * branch, with blobs inlined. For a compacted session, pass the whole log, not the working set.
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

/** Returns `null` if there is nothing to inline. */
function inlinedContent({ content }: JsonObject, readBlob: ReadBlob): unknown {
  if (!Array.isArray(content)) return null;
  const inlined = inlineBlobs(content, readBlob);
  return inlined === content ? null : inlined;
}
