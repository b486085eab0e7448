import type { Entry } from "../core/entries.ts";
import { isRecord } from "../core/shape.ts";

/** The blobs that an entry's blocks live in, or that a note names. */
export function blobsOf(entry: Entry): string[] {
  const content =
    entry.type === "message" && "content" in entry.message
      ? entry.message.content
      : entry.type === "custom_message"
        ? entry.content
        : null;
  if (!Array.isArray(content)) return [];
  return content.flatMap((block: unknown) => {
    const blob = isRecord(block) && isRecord(block.skein) ? block.skein.blob : null;
    return isRecord(blob) && typeof blob.sha256 === "string" ? [blob.sha256] : [];
  });
}
