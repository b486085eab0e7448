import { realpath } from "node:fs/promises";
import { isAbsolute, relative, sep } from "node:path";
import type { App } from "./app.ts";
import type { WrittenAttachments } from "./attachment-files.ts";
import { findWritten, writeAttachments } from "./attachment-files.ts";
import type { AttachmentProblem, AttachmentReceipt } from "./attachments.ts";
import { hasNotes, readAttachments, receiptByNotes } from "./attachments.ts";
import type { SpawnTerms } from "./spawn-checks.ts";
import type { SpawnNames, SpawnRefusal, SpawnRequest } from "./spawn-request.ts";

/** The attachments of a child where they belong, before it is there. */
export interface ChildFiles {
  readonly folder: string;
  /** The same relative to the child's working directory; `null`: it lies elsewhere. */
  readonly path: string | null;
  readonly receipt: AttachmentReceipt;
  undo(): Promise<void>;
}

/** `null`: there are none. */
export async function placeFiles(
  { files }: Pick<App, "files">,
  userId: string | null,
  { attachments: given, mountPath }: SpawnRequest,
  { own: { subagents }, target, cwd, attachments }: SpawnTerms,
  { sessionId }: SpawnNames,
): Promise<ChildFiles | null | SpawnRefusal> {
  if (given.length === 0) return null;
  const owner = { userId, agentId: target.id, sessionId };
  const own = mountPath === undefined ? files.attachments(owner) : null;
  if (mountPath === undefined && own === null) return refusal(noPlace);
  if (own !== null) files.checkRootInPlace();
  const wish = { owner, files, at: own === null ? { cwd, mountPath: mountPath ?? "" } : { own } };
  const receipt = receiptByNotes(given);
  const isReplay = hasNotes(given);
  const placed: WrittenAttachments | AttachmentProblem | null = isReplay
    ? await findWritten(wish, sessionId, receipt.files)
    : await writeAttachments(wish, sessionId, attachments);
  if (placed === null) {
    const read = readAttachments(given, subagents.attachments);
    return refusal("code" in read ? read : noPlace);
  }
  return "code" in placed
    ? refusal(placed)
    : { ...placed, path: await pathBelow(placed.folder, cwd), receipt };
}

/** `folder` is a real path. */
async function pathBelow(folder: string, cwd: string): Promise<string | null> {
  const base = await realpath(cwd).catch(() => cwd);
  const path = relative(base, folder);
  return path === "" || isAbsolute(path) || path.split(sep)[0] === ".." ? null : path.split(sep).join("/");
}

const noPlace: AttachmentProblem = {
  code: "attachments_unavailable",
  error: "attachments_unavailable: this store keeps no files; use attachAs.mountPath, or leave them out",
};

function refusal(problem: AttachmentProblem): SpawnRefusal {
  return { status: "error", ...problem };
}
