import type { AttachmentProblem, AttachmentReceipt } from "../attachments/contract.ts";
import { hasNotes, receiptByNotes } from "../attachments/notes.ts";
import { readAttachments } from "../attachments/read-attachments.ts";
import type { WrittenAttachments } from "../attachments/write-attachments.ts";
import { findWritten, writeAttachments } from "../attachments/write-attachments.ts";
import type { BetweenDeps } from "./contract.ts";
import type { SpawnTerms } from "./spawn-checks.ts";
import type { SpawnNames } from "./spawn-names.ts";
import type { SpawnRefusal, SpawnRequest } from "./spawn-request.ts";

/** The attachments of a child where they belong, before it is there. */
export interface ChildFiles {
  readonly folder: string;
  readonly receipt: AttachmentReceipt;
  undo(): Promise<void>;
}

/** `null`: there are none. */
export async function placeFiles(
  deps: Pick<BetweenDeps, "attachmentFolder">,
  userId: string | null,
  { attachments: given, mountPath }: SpawnRequest,
  { own, target, cwd, attachments }: SpawnTerms,
  { sessionId }: SpawnNames,
): Promise<ChildFiles | null | SpawnRefusal> {
  if (given.length === 0) return null;
  const folder = mountPath === undefined ? deps.attachmentFolder(userId, target.id, sessionId) : null;
  if (mountPath === undefined && folder === null) return refusal(noPlace);
  const wish = folder === null ? { cwd, mountPath: mountPath ?? "" } : { own: folder };
  const receipt = receiptByNotes(given);
  const isReplay = hasNotes(given);
  const placed: WrittenAttachments | AttachmentProblem | null = isReplay
    ? await findWritten(wish, sessionId, receipt.files)
    : await writeAttachments(wish, sessionId, attachments);
  if (placed === null) {
    const read = readAttachments(given, own.subagents.attachments);
    return refusal("code" in read ? read : noPlace);
  }
  return "code" in placed ? refusal(placed) : { ...placed, receipt };
}

const noPlace: AttachmentProblem = {
  code: "attachments_unavailable",
  error: "attachments_unavailable: this store keeps no files; use attachAs.mountPath, or leave them out",
};

function refusal(problem: AttachmentProblem): SpawnRefusal {
  return { status: "error", ...problem };
}
