import { createHash } from "node:crypto";
import { join } from "node:path";
import { hashesIn } from "./blobs.ts";
import type { SessionCatalogue } from "./catalogue.ts";
import { readWhole } from "./disk-files.ts";
import { dropBlobs } from "./redact-copies.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";

/**
 * Sessions that are in the trash, for good. Files go first, durably, and the claim on the id last: until then it is done again.
 * What is left then is bytes in the databases' files.
 */
export async function purgeSessions(
  catalogue: SessionCatalogue,
  rows: readonly SessionRow[],
  tombstone: { readonly what: string; readonly name: string },
  user?: { readonly userId: string; removeHome(): Promise<void> },
): Promise<void> {
  const { work, moves } = catalogue;
  const uids = rows.map(({ uid }) => uid);
  const blobs = rows.map((row) => ({ row, hashes: blobsIn(catalogue, row) }));
  await work.discardFiles(uids);
  for (const row of rows) await moves.removeFiles(row);
  await user?.removeHome();
  work.forget(uids, { ...tombstone, at: catalogue.now() }, user?.userId);
  for (const { row, hashes } of blobs) await dropBlobs(catalogue, [row], hashes);
  await catalogue.erase(rows, user === undefined ? uids : [...uids, user.userId]);
  // A listing that was being written when the folder went away has made it again.
  await catalogue.feed.untilIdle();
  await user?.removeHome();
}

/**
 * Everything that a user has, for good. Sessions are in the trash first, so that nobody begins anything with them. One
 * that is made meanwhile is a new beginning, and stays.
 */
export async function purgeUser(
  catalogue: SessionCatalogue,
  userId: string,
  home: string,
): Promise<SessionRow[]> {
  const { work, feed, moves } = catalogue;
  const rows = work.ofUser(userId);
  for (const row of rows) {
    if (row.state === "trashed") continue;
    catalogue.drop(row);
    await moves.underLock(row, undefined, async () =>
      work.move(row.uid, row.state, "trashed", catalogue.now()),
    );
    await feed.service.remove(row.uid);
  }
  const purged = rows.map((row): SessionRow => ({ ...row, state: "trashed" }));
  const name = createHash("sha256").update(userId).digest("hex");
  const removed = new Set(rows.map(({ uid }) => uid));
  const removeHomeOfUser = () => removeHome(catalogue, userId, home, removed);
  await purgeSessions(catalogue, purged, { what: "user", name }, { userId, removeHome: removeHomeOfUser });
  return rows;
}

/** The blobs that a session in the trash refers to. One whose move there was cut off still lies in its old place. */
function blobsIn(catalogue: SessionCatalogue, row: SessionRow): string[] {
  const places: SessionRow["state"][] = ["trashed", "live"];
  return places.flatMap((state) => {
    const bytes = readWhole(catalogue.settings.disk, catalogue.pathsOf({ ...row, state }).log);
    return bytes === null ? [] : hashesIn(Buffer.from(bytes).toString("utf8"));
  });
}

/** Blobs, listings and the user's name; while nobody can claim a session there. */
async function removeHome(
  { work, settings }: SessionCatalogue,
  userId: string,
  home: string,
  purged: ReadonlySet<string>,
): Promise<void> {
  const { disk, root } = settings;
  const folder = join(root, home);
  const isRemoved = work.exclusively(() => {
    const isUsed = home === "" || work.othersIn(home, userId) > 0;
    if (isUsed || work.ofUser(userId).some(({ uid }) => !purged.has(uid))) return false;
    disk.removeTree(join(folder, "agents"));
    disk.unlink(join(folder, "user.json"));
    // Another user's home may lie inside of this one.
    if (disk.list(folder).length === 0) disk.removeTree(folder);
    return true;
  });
  if (!isRemoved) return;
  const parent = join(folder, "..");
  for (const path of [folder, parent]) if (disk.isFolder(path)) await disk.syncFolder(path);
}

/** Erases the bytes of removed rows of `work.db` now, or once no other process reads the file. */
export function eraseRemoved(work: WorkDb): void {
  work.requestErase();
  const request = work.pendingErase();
  if (request !== null && work.scrub()) work.erased(request);
}
