import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../../core/errors.ts";
import { isRecord } from "../../core/shape.ts";
import type { AttachmentFacts } from "./contract.ts";
import { manifestName } from "./contract.ts";
import { nameProblem } from "./names.ts";

/** The list of a session's files. It is written first: whatever of them is there, it says what belongs to it. */
export interface Manifest {
  readonly sessionId: string;
  /** How many of the folders on the way were made for it. */
  readonly foldersMade: number;
  readonly files: readonly (AttachmentFacts & { readonly mimeType?: string })[];
}

/** `null`: there is none that can be read. Names in it are checked: who can write here could have written it. */
export async function readManifest(folder: string): Promise<Manifest | null> {
  const bytes = await readReal(join(folder, manifestName));
  if (bytes === null) return null;
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    return isManifest(value) ? value : null;
  } catch {
    return null;
  }
}

/** Whether every file is there, as it was written. */
export async function isComplete(folder: string, { files }: Manifest): Promise<boolean> {
  const right = await Promise.all(files.map((file) => isUnchanged(folder, file)));
  return right.every((each) => each);
}

export async function isUnchanged(folder: string, { name, sha256 }: AttachmentFacts): Promise<boolean> {
  const bytes = await readReal(join(folder, name));
  return bytes !== null && createHash("sha256").update(bytes).digest("hex") === sha256;
}

/** A file that is one, and no link; `null`: there is none. */
async function readReal(path: string): Promise<Buffer | null> {
  try {
    // Without O_NONBLOCK a pipe of that name would keep us waiting.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      return (await file.stat()).isFile() ? await file.readFile() : null;
    } finally {
      await file.close();
    }
  } catch (error) {
    if (codeOf(error) === "") throw error;
    return null;
  }
}

function isManifest(value: unknown): value is Manifest {
  if (!isRecord(value) || typeof value.sessionId !== "string" || !Array.isArray(value.files)) return false;
  if (!Number.isInteger(value.foldersMade)) return false;
  return value.files.every(
    (file) =>
      isRecord(file) &&
      typeof file.name === "string" &&
      nameProblem(file.name) === null &&
      typeof file.sha256 === "string",
  );
}
