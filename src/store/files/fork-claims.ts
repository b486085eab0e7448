import type { Script } from "../../core/script.ts";
import { valueScript } from "../../core/script.ts";
import type { AfterCommit } from "../../runs/contract.ts";
import { noSuchSession } from "../rules.ts";
import { doNothing } from "../work.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";
import { isVisible } from "./work-db.ts";

/** The claims of sessions whose files are being written: forks, imports and adoptions. */

/** A fork that is claimed after its source was removed might escape a purge of the user. */
export function checkForkSource(work: WorkDb, from: SessionRow): Script<AfterCommit> {
  const now = work.byUid(from.uid);
  return now !== null && isVisible(now) ? valueScript(doNothing) : noSuchSession(from.sessionId);
}

/** Whether a session still has its claim, or has lost it for a reason other than a purge. */
export function isForkWanted(work: WorkDb, uid: string, now = work.byUid(uid)): boolean {
  if (now !== null) return now.state !== "trashed";
  const sql = "SELECT 1 FROM tombstones WHERE what = 'session' AND name = ?";
  return work.ledger.sql(sql).get(uid) === undefined;
}

/**
 * Records that the files exist. If another process considered this one dead and released the claim, the names are
 * claimed again. Throws `not_found` if the user has been purged since.
 */
export function finishFork(work: WorkDb, row: SessionRow): void {
  work.exclusively(() => {
    const now = work.byUid(row.uid);
    if (!isForkWanted(work, row.uid, now)) noSuchSession(row.sessionId);
    if (now === null) work.claim({ ...row, state: "live" });
    else work.move(row.uid, "forking", "live");
  });
}

/**
 * Moves all of a user's sessions to the trash in one transaction, so a fork either is one of them or cannot be claimed
 * afterward. A session that is being written gets a tombstone because its row will be gone when it is finished. Returns
 * the sessions as they were.
 */
export function trashUser(work: WorkDb, userId: string, at: number): SessionRow[] {
  return work.exclusively(() => {
    const rows = work.ofUser(userId);
    for (const { uid, state } of rows) {
      if (state === "forking") work.addTombstone({ what: "session", name: uid, at });
      if (state !== "trashed") work.move(uid, state, "trashed", at);
    }
    return rows;
  });
}
