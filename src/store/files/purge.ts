import { createHash } from "node:crypto";
import { join } from "node:path";
import type { SessionCatalogue } from "./catalogue.ts";
import { removeTreeDurably } from "./disk-files.ts";
import type { SessionRow } from "./work-db.ts";

/** Users with all they had, for good. */

/** Everything of a user. Sessions are in the trash first, so that nobody begins anything with them. */
export async function purgeUser(
  catalogue: SessionCatalogue,
  userId: string,
  home: string,
): Promise<SessionRow[]> {
  const { work, settings, feed, moves } = catalogue;
  const rows = work.ofUser(userId);
  for (const row of rows) {
    if (row.state === "trashed") continue;
    catalogue.drop(row);
    await moves.underLock(row, undefined, async () =>
      work.move(row.uid, row.state, "trashed", catalogue.now()),
    );
    await feed.service.remove(row.uid);
  }
  const { disk, root } = settings;
  for (const row of rows) await moves.removeFiles(row);
  const isTheirs = home !== "" && work.othersIn(home, userId) === 0;
  if (isTheirs) await removeTreeDurably(disk, join(root, home));
  const name = createHash("sha256").update(userId).digest("hex");
  const uids = rows.map(({ uid }) => uid);
  work.forget(uids, { what: "user", name, at: catalogue.now() });
  await feed.service.scrub([]);
  return rows;
}
