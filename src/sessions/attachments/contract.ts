/** A file that is handed to a new session, as it was given. */
export interface GivenAttachment {
  readonly name: string;
  readonly content: string;
  readonly encoding?: "utf8" | "base64";
  readonly mimeType?: string;
}

/** The same, read and found right. */
export interface Attachment {
  /** NFC. */
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly sha256: string;
  readonly mimeType?: string;
}

/** What is said of a file instead of its content. */
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

/** Why attachments are not taken: `code` for programs, `error` for people and models. */
export interface AttachmentProblem {
  readonly code: `attachments_${string}`;
  readonly error: string;
}

export interface AttachmentLimits {
  readonly maxFileBytes: number;
  readonly maxTotalBytes: number;
}

export const mostAttachments = 50;
export const manifestName = "manifest.json";
