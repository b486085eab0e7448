import { createHash } from "node:crypto";
import { join } from "node:path";
import type { SessionCatalogue } from "./catalogue.ts";
import type { SessionRow } from "./work-db.ts";

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
  for (const row of rows) await moves.removeFiles(row);
  await removeHome(catalogue, userId, home, new Set(rows.map(({ uid }) => uid)));
  const name = createHash("sha256").update(userId).digest("hex");
  const uids = rows.map(({ uid }) => uid);
  work.forget(uids, { what: "user", name, at: catalogue.now() });
  await feed.service.scrub([]);
  return rows;
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
