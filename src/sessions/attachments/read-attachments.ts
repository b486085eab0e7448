import { createHash } from "node:crypto";
import { cutText, escapeToLine } from "../../core/text.ts";
import type {
  Attachment,
  AttachmentLimits,
  AttachmentProblem,
  AttachmentReceipt,
  GivenAttachment,
} from "./contract.ts";
import { mostAttachments } from "./contract.ts";
import { foldedName, nameProblem } from "./names.ts";
import { isNote } from "./notes.ts";

const mimeTypeForm = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/i;
const base64Form = /^[A-Za-z0-9+/]*={0,2}$/;

/** Reads files out of arguments. Sizes are counted before anything is decoded, and one mistake refuses all of them. */
export function readAttachments(
  given: readonly GivenAttachment[],
  limits: AttachmentLimits,
): { readonly attachments: readonly Attachment[] } | AttachmentProblem {
  if (given.length > mostAttachments) {
    return problem("file_count_exceeded", `maxFiles=${mostAttachments}`);
  }
  return namesProblem(given) ?? sizesProblem(given, limits) ?? decoded(given);
}

export function receiptOf(files: readonly Attachment[]): AttachmentReceipt {
  return {
    count: files.length,
    totalBytes: files.reduce((sum, { bytes }) => sum + bytes.length, 0),
    files: files.map(({ name, bytes, sha256 }) => ({ name, bytes: bytes.length, sha256 })),
  };
}

function namesProblem(given: readonly GivenAttachment[]): AttachmentProblem | null {
  const folds = new Set<string>();
  for (const { name: written, mimeType } of given) {
    const name = written.normalize("NFC");
    const wrong = nameProblem(name);
    if (wrong !== null) return problem("invalid_name", shown(written), wrong);
    const fold = foldedName(name);
    if (folds.has(fold)) return problem("duplicate_name", shown(name));
    folds.add(fold);
    if (mimeType !== undefined && !mimeTypeForm.test(mimeType))
      return problem("invalid_mime_type", `name=${shown(name)}`, "write it as type/subtype");
  }
  return null;
}

function sizesProblem(given: readonly GivenAttachment[], limits: AttachmentLimits): AttachmentProblem | null {
  const { maxFileBytes, maxTotalBytes } = limits;
  let totalBytes = 0;
  for (const file of given) {
    const bytes = sizeOf(file);
    const name = shown(file.name.normalize("NFC"));
    if (bytes === null) return problem("invalid_base64_or_too_large", `name=${name}`);
    if (bytes > maxFileBytes) {
      return problem("file_bytes_exceeded", `name=${name} bytes=${bytes} maxFileBytes=${maxFileBytes}`);
    }
    totalBytes += bytes;
    if (totalBytes > maxTotalBytes) {
      return problem("total_bytes_exceeded", `totalBytes=${totalBytes} maxTotalBytes=${maxTotalBytes}`);
    }
  }
  return null;
}

/** In bytes, without decoding it; `null`: it is no base64. */
export function sizeOf({ content, encoding }: Pick<GivenAttachment, "content" | "encoding">): number | null {
  if (encoding !== "base64") return Buffer.byteLength(content, "utf8");
  if (content.length % 4 !== 0) return null;
  const padding = content.endsWith("==") ? 2 : content.endsWith("=") ? 1 : 0;
  return (content.length / 4) * 3 - padding;
}

function decoded(
  given: readonly GivenAttachment[],
): { readonly attachments: readonly Attachment[] } | AttachmentProblem {
  const attachments: Attachment[] = [];
  for (const { name: written, content, encoding, mimeType } of given) {
    const name = written.normalize("NFC");
    if (isNote(content)) {
      const advice =
        "the transcript keeps a note instead of the content, and that is what was given; send the content again";
      return problem("content_missing", `name=${shown(name)}`, advice);
    }
    const bytes = encoding === "base64" ? fromBase64(content) : fromText(content);
    if (bytes === null) {
      return encoding === "base64"
        ? problem("invalid_base64_or_too_large", `name=${shown(name)}`)
        : problem("invalid_text", `name=${shown(name)}`, "it is not well-formed Unicode; use base64");
    }
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    attachments.push({ name, bytes, sha256, ...(mimeType === undefined ? {} : { mimeType }) });
  }
  return { attachments };
}

/** Strictly: the alphabet, its padding, and no bits beyond the last byte. */
function fromBase64(content: string): Uint8Array | null {
  if (content.length % 4 !== 0 || !base64Form.test(content)) return null;
  const bytes = Buffer.from(content, "base64");
  return bytes.toString("base64") === content ? bytes : null;
}

function fromText(content: string): Uint8Array | null {
  return content.isWellFormed() ? Buffer.from(content, "utf8") : null;
}

function problem(name: string, facts: string, why?: string): AttachmentProblem {
  const code = `attachments_${name}` as const;
  return { code, error: `${code} (${facts})${why === undefined ? "" : `: ${why}`}` };
}

function shown(name: string): string {
  return name === "" ? "empty" : escapeToLine(cutText(name, 100));
}
