import { createHash } from "node:crypto";
import { isRecord } from "../core/is-record.ts";
import { cutText, escapeToLine } from "../core/text.ts";

/** A file for a new session, as passed by the caller. */
export interface GivenAttachment {
  readonly name: string;
  readonly content: string;
  readonly encoding?: "utf8" | "base64";
  readonly mimeType?: string;
}

/** A checked and decoded attachment. */
export interface Attachment {
  /** Normalized to NFC. */
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly sha256: string;
  readonly mimeType?: string;
}

/** Describes a file without including its content. */
export interface AttachmentFacts {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface AttachmentReceipt {
  readonly count: number;
  readonly totalBytes: number;
  readonly files: readonly AttachmentFacts[];
}

/** Why attachments were rejected: `code` for programs, `error` for users and models. */
export interface AttachmentProblem {
  readonly code: `attachments_${string}`;
  readonly error: string;
}

interface AttachmentLimits {
  readonly maxFileBytes: number;
  readonly maxTotalBytes: number;
}

export const maxAttachments = 50;
export const manifestName = "manifest.json";

const maxNameBytes = 200;
/** Windows device names, with any extension. */
const devices = /^(?:con|prn|aux|nul|clock\$|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?$/iu;

/**
 * Returns the problem with a name that is already in NFC, or `null` if there is none. Models choose the names, so each
 * name must be a valid path segment on every operating system.
 */
export function nameProblem(name: string): string | null {
  if (name === "") return "it is empty";
  if (!name.isWellFormed()) return "it is not well-formed Unicode";
  if (new TextEncoder().encode(name).length > maxNameBytes) return `it is longer than ${maxNameBytes} bytes`;
  if (escapeToLine(name) !== name) return "it contains a control character";
  if (/[/\\:*?"<>|]/.test(name)) return 'it contains one of / \\ : * ? " < > |';
  if (name.startsWith(".")) return "it starts with a dot";
  if (/[.\s]$/u.test(name) || /^\s/u.test(name))
    return "it starts with a space, or ends with a space or a dot";
  if (devices.test(name)) return "it is a device name";
  return foldedName(name) === manifestName ? `${manifestName} is reserved for the list of files` : null;
}

/** Maps names that some file systems treat as equal to the same string. */
export function foldedName(name: string): string {
  return name.normalize("NFKC").toUpperCase().toLowerCase().normalize("NFKC");
}

const mimeTypeForm = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/i;
const base64Form = /^[A-Za-z0-9+/]*={0,2}$/;

/**
 * Checks and decodes files. Sizes are checked before anything is decoded. If one file is invalid, all are rejected.
 */
export function readAttachments(
  given: readonly GivenAttachment[],
  limits: AttachmentLimits,
): { readonly attachments: readonly Attachment[] } | AttachmentProblem {
  if (given.length > maxAttachments) {
    return problem("file_count_exceeded", `maxFiles=${maxAttachments}`);
  }
  return namesProblem(given) ?? sizesProblem(given, limits) ?? decode(given);
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

/** Returns the size in bytes without decoding, or `null` if the content is not valid base64. */
export function sizeOf({ content, encoding }: Pick<GivenAttachment, "content" | "encoding">): number | null {
  if (encoding !== "base64") return Buffer.byteLength(content, "utf8");
  if (content.length % 4 !== 0) return null;
  const padding = content.endsWith("==") ? 2 : content.endsWith("=") ? 1 : 0;
  return (content.length / 4) * 3 - padding;
}

function decode(
  given: readonly GivenAttachment[],
): { readonly attachments: readonly Attachment[] } | AttachmentProblem {
  const attachments: Attachment[] = [];
  for (const { name: written, content, encoding, mimeType } of given) {
    const name = written.normalize("NFC");
    if (isNote(content)) {
      const advice = "the content was replaced by the note that transcripts keep; send the content itself";
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

/** Decodes base64, or returns `null` if the alphabet or the padding is wrong or an unused bit is set. */
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

/** In transcripts, a note with a file's size and hash replaces its content. */
const noteForm = /^\[not kept here: (\d{1,15}) bytes, sha256 ([0-9a-f]{64})\]$/;

export function isNote(content: string): boolean {
  return noteForm.test(content);
}

export function hasNotes(given: readonly Pick<GivenAttachment, "content">[]): boolean {
  return given.some(({ content }) => isNote(content));
}

/**
 * Returns a call's arguments as the transcript stores them, with file contents replaced by notes. Returns the same
 * object if there are no contents.
 */
export function withoutContents(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { attachments } = args;
  if (!Array.isArray(attachments) || !attachments.some(hasContent)) return args;
  return { ...args, attachments: attachments.map((each) => (hasContent(each) ? replaceByNote(each) : each)) };
}

/** Returns the receipt for files, from their contents or from the notes that replaced the contents. */
export function receiptByNotes(given: readonly GivenAttachment[]): AttachmentReceipt {
  const files = given.map(factsOf);
  return { count: files.length, totalBytes: files.reduce((sum, { bytes }) => sum + bytes, 0), files };
}

function factsOf({ name: written, content, encoding }: GivenAttachment): AttachmentFacts {
  const name = written.normalize("NFC");
  const [, bytes, sha256] = noteForm.exec(content) ?? [];
  if (bytes !== undefined && sha256 !== undefined) return { name, bytes: Number(bytes), sha256 };
  const decoded = Buffer.from(content, encoding === "base64" ? "base64" : "utf8");
  return { name, bytes: decoded.length, sha256: createHash("sha256").update(decoded).digest("hex") };
}

type WithContent = Record<string, unknown> & { readonly content: string };

function hasContent(value: unknown): value is WithContent {
  return isRecord(value) && typeof value.content === "string" && !isNote(value.content);
}

function replaceByNote(given: WithContent): Record<string, unknown> {
  // The arguments have not been parsed yet, so the encoding's capitalization can differ.
  const isBase64 = typeof given.encoding === "string" && given.encoding.trim().toLowerCase() === "base64";
  const encoding = isBase64 ? "base64" : "utf8";
  const { bytes, sha256 } = factsOf({ name: "", content: given.content, encoding });
  return { ...given, content: `[not kept here: ${bytes} bytes, sha256 ${sha256}]` };
}
