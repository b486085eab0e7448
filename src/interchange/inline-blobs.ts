import type { Content } from "../core/messages.ts";
import { isRecord } from "../core/shape.ts";
import type { JsonObject } from "./json-lines.ts";
import { objectField, textField } from "./json-lines.ts";

/** The bytes of a blob; `null` when it is not there, and the block that stands for it then stays. */
export type BlobOf = (sha256: string) => Uint8Array | null;

export const noBlobs: BlobOf = () => null;

/** The content with what lives in blobs put back in its place; the same object when there is nothing to do. */
export function inlineBlobs<C extends Content | readonly unknown[]>(content: C, blobOf: BlobOf): C {
  if (!Array.isArray(content)) return content;
  const inlined = content.map((block) => (isRecord(block) ? inlineBlob(block, blobOf) : block));
  return inlined.some((block, index) => block !== content[index]) ? (inlined as unknown as C) : content;
}

function inlineBlob(block: JsonObject, blobOf: BlobOf): unknown {
  const blob = objectField(objectField(block, "skein") ?? {}, "blob");
  const sha256 = blob === null ? null : textField(blob, "sha256");
  const bytes = sha256 === null ? null : blobOf(sha256);
  if (blob === null || bytes === null) return block;
  if (blob.was === "image") {
    const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
    return { type: "image", data, mimeType: textField(blob, "mimeType") ?? "application/octet-stream" };
  }
  const { skein: _skein, ...rest } = block;
  return { ...rest, type: "text", text: new TextDecoder().decode(bytes) };
}
