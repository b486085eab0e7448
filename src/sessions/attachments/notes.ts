import { createHash } from "node:crypto";
import { isRecord } from "../../core/shape.ts";
import type { AttachmentFacts, AttachmentReceipt, GivenAttachment } from "./contract.ts";

/** In transcripts a note stands in the place of a file's content: its size and sum, as they are in the receipt. */

const form = /^\[not kept here: (\d{1,15}) bytes, sha256 ([0-9a-f]{64})\]$/;

export function isNote(content: string): boolean {
  return form.test(content);
}

export function hasNotes(given: readonly Pick<GivenAttachment, "content">[]): boolean {
  return given.some(({ content }) => isNote(content));
}

/** The arguments of a call as its transcript has them: every attachment's content is a note. The same object if there is none. */
export function withoutContents(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { attachments } = args;
  if (!Array.isArray(attachments) || !attachments.some(hasContent)) return args;
  return { ...args, attachments: attachments.map((each) => (hasContent(each) ? noted(each) : each)) };
}

/** The receipt of files, by their contents or by the notes in their place. */
export function receiptByNotes(given: readonly GivenAttachment[]): AttachmentReceipt {
  const files = given.map(factsOf);
  return { count: files.length, totalBytes: files.reduce((sum, { bytes }) => sum + bytes, 0), files };
}

function factsOf({ name: written, content, encoding }: GivenAttachment): AttachmentFacts {
  const name = written.normalize("NFC");
  const [, bytes, sha256] = form.exec(content) ?? [];
  if (bytes !== undefined && sha256 !== undefined) return { name, bytes: Number(bytes), sha256 };
  const decoded = Buffer.from(content, encoding === "base64" ? "base64" : "utf8");
  return { name, bytes: decoded.length, sha256: createHash("sha256").update(decoded).digest("hex") };
}

type WithContent = Record<string, unknown> & { readonly content: string };

function hasContent(value: unknown): value is WithContent {
  return isRecord(value) && typeof value.content === "string" && !isNote(value.content);
}

function noted(given: WithContent): Record<string, unknown> {
  // As it came, before it was read: a word in other capitals is that word.
  const isBase64 = typeof given.encoding === "string" && given.encoding.trim().toLowerCase() === "base64";
  const encoding = isBase64 ? "base64" : "utf8";
  const { bytes, sha256 } = factsOf({ name: "", content: given.content, encoding });
  return { ...given, content: `[not kept here: ${bytes} bytes, sha256 ${sha256}]` };
}
