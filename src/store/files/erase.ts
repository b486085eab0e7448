import { createHash } from "node:crypto";
import { join } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import { parsingSession } from "../../core/parse-session.ts";
import { runOn } from "../../core/script.ts";
import { Slices } from "../../core/slices.ts";
import { SessionTree } from "../../core/tree.ts";
import type { Redaction } from "../contract.ts";
import type { RedactionTarget, Tombstones } from "../redact.ts";
import { checkRedactable, findRedacted, redactionOf, removedEntriesOf, withTombstones } from "../redact.ts";
import { hashesIn } from "../session-trees.ts";
import type { FoundBlob } from "./blobs.ts";
import { blobsInTrash, findBlobs, isUnchanged } from "./blobs.ts";
import { readWhole, replaceWhole } from "./disk.ts";
import { trashUser } from "./fork-claims.ts";
import { listCopies, sessionPaths } from "./layout.ts";
import type { SessionCatalog } from "./session-catalog.ts";
import { isMakerAlive } from "./session-files.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";
import { isVisible } from "./work-db.ts";

/** A session with tombstones. */
interface RedactedSession {
  readonly row: SessionRow;
  readonly tree: SessionTree;
  readonly entryIds: readonly string[];
}

const none = new Uint8Array(0);
/**
 * How often and how long to poll for a fork in progress. A process that is known to be alive gets more time to finish
 * its fork.
 */
const pollMs = 20;
const mostPolls = 500;
const mostPollsOfLiving = 15_000;

/**
 * Redacts the copies before the session itself. Until the session itself changes, its entries define what to look for,
 * so an interrupted redaction can be repeated. Finally, redacts anything that has been copied or restored since.
 */
export async function redactEntries(
  catalog: SessionCatalog,
  row: SessionRow,
  entryIds: readonly string[],
): Promise<{ redaction: Redaction; changed: SessionRow[] }> {
  const sought = await catalog.using(row, async (file) => {
    await file.loadWhole();
    checkRedactable(file.whole, entryIds);
    return new Slices().run(findRedacted(file.readLog(0), new Set(entryIds)));
  });
  const pass = new RedactionPass(catalog, row, sought);
  const redactWork = async () => {
    const uids = [row, ...pass.done.map((each) => each.row)].map(({ uid }) => uid);
    const removed = removedEntriesOf(sought, uids);
    await catalog.work.attendance.attendant.discardFiles(removed);
    catalog.work.redact(row.userId, removed);
    return uids;
  };
  await pass.redactAllCopies();
  await redactWork();
  await pass.redact(row);
  await pass.redactAllCopies();
  const uids = await redactWork();
  const rows = [row, ...pass.done.map((each) => each.row)];
  const hashes = sought.lines.flatMap((line) => hashesIn(JSON.stringify(line)));
  await dropBlobs(catalog, findBlobs(catalog.settings, rows, hashes));
  await catalog.erase(rows, uids);
  // Published even if nothing changed, because an earlier attempt might have failed before publishing.
  const changed = [...new Map(rows.map((each) => [each.uid, each])).values()].filter(isVisible);
  const redacted = pass.done.filter((each) => each.entryIds.length > 0);
  const itself = redacted.filter((each) => each.row.uid === row.uid);
  return {
    redaction: redactionOf([...itself, ...redacted.filter((each) => !itself.includes(each))]),
    changed,
  };
}

/** One redaction across a user's sessions. */
class RedactionPass {
  readonly done: RedactedSession[] = [];
  readonly #catalog: SessionCatalog;
  readonly #row: SessionRow;
  readonly #sought: RedactionTarget;
  /** Keyed by uid and state so that a session that is restored or removed during the redaction is checked again. */
  readonly #seen = new Set<string>();

  constructor(catalog: SessionCatalog, row: SessionRow, sought: RedactionTarget) {
    this.#catalog = catalog;
    this.#row = row;
    this.#sought = sought;
  }

  /** Repeats until no unchecked copies remain. */
  async redactAllCopies(): Promise<void> {
    for (;;) {
      const rows = (await this.#findCopies()).filter((each) => !this.#seen.has(placeName(each)));
      if (rows.length === 0) return;
      for (const each of rows) await this.redact(each);
    }
  }

  async redact(row: SessionRow): Promise<void> {
    this.#seen.add(placeName(row));
    const isItself = row.uid === this.#row.uid;
    const found = isVisible(row)
      ? await this.#redactLive(row, isItself)
      : await this.#redactTrashed(row, isItself);
    await this.#redactCopies(row, isItself);
    if (found !== null) this.done.push({ row, ...found });
  }

  /**
   * Returns the user's other sessions that have one of the entry IDs or are not fully indexed, and all of the user's
   * trash. Waits for forks, which might have read the session before the redaction.
   */
  async #findCopies(): Promise<SessionRow[]> {
    const { feed, work } = this.#catalog;
    for (let polls = 0; ; polls++) {
      await feed.indexAll();
      // Read both before and after the query because a session that is indexed in between might be missing from the
      // query's result.
      const marked = work.dirty();
      const known = await feed.service.withEntries([...this.#sought.ids]);
      const uids = new Set([...marked, ...known, ...work.dirty()]);
      const rows = work
        .ofUser(this.#row.userId)
        .filter((each) => each.uid !== this.#row.uid || !isVisible(each));
      const forking = rows.find((each) => each.state === "forking");
      if (forking === undefined) {
        return rows.filter((each) => each.state === "trashed" || uids.has(each.uid));
      }
      await this.#waitFor(forking, polls);
    }
  }

  async #waitFor(forking: SessionRow, polls: number): Promise<void> {
    const { mover, settings } = this.#catalog;
    // Ends forks whose process has exited.
    if (polls === mostPolls) await mover.finish(this.#catalog.now());
    if (polls > (isMakerAlive(forking) ? mostPollsOfLiving : mostPolls)) {
      const { log: file } = this.#catalog.pathsOf(forking);
      throw new SkeinError("locked", { file, holder: "a fork in progress" });
    }
    await settings.lock.sleep(pollMs);
  }

  async #redactLive(row: SessionRow, isItself: boolean): Promise<Omit<RedactedSession, "row"> | null> {
    const { settings, work } = this.#catalog;
    const paths = this.#catalog.pathsOf(row);
    const isGone = [paths.log, paths.working].every((path) => settings.disk.stat(path) === null);
    // A session without files cannot contain a copy.
    if (!isItself && isGone) return null;
    try {
      const found = await this.#catalog.using(row, async (file) => {
        let entryIds: readonly string[] | null = null;
        await file.rewrite(async (bytes) => {
          const made = await this.#redactBytes(bytes, isItself);
          if (made === null) return null;
          entryIds = made.entryIds;
          work.markDirty(row.uid);
          return made.bytes;
        });
        if (entryIds === null) return null;
        await file.loadWhole();
        return { tree: file.whole, entryIds };
      });
      if (found !== null) await this.#catalog.using(row, (file) => this.#catalog.bringUp(row, file));
      return found;
    } catch (error) {
      const now = work.byUid(row.uid);
      const isAway = now === null || !isVisible(now);
      if (isAway && error instanceof SkeinError && error.code === "not_found") return null; // It is checked in the trash instead.
      throw error;
    }
  }

  /** An interrupted removal might have left files in both folders. Working sets are rebuilt from the log. */
  async #redactTrashed(row: SessionRow, isItself: boolean): Promise<Omit<RedactedSession, "row"> | null> {
    const { disk, newId, root } = this.#catalog.settings;
    const places = [this.#catalog.pathsOf(row), sessionPaths(root, row, row.sessionId)];
    let found: Omit<RedactedSession, "row"> | null = null;
    await this.#catalog.mover.underLock(row, undefined, async () => {
      if (this.#catalog.work.byUid(row.uid)?.state !== "trashed") return; // Restored in the meantime, so it is checked there.
      for (const { log, working } of places) {
        const made = await this.#redactFile(log, isItself);
        if (disk.stat(log) === null ? (await this.#redactFile(working, isItself)) !== null : made !== null)
          disk.unlink(working);
        if (made === null) continue;
        await replaceWhole(disk, log, made.bytes, newId());
        found = { tree: await treeIn(made.bytes), entryIds: made.entryIds };
      }
    });
    return found;
  }

  /**
   * Redacts the originals and backups next to a session's files. They stay in the folder where the session was live,
   * even when the session is in the trash.
   */
  async #redactCopies(row: SessionRow, isItself: boolean): Promise<void> {
    const { disk, newId, root } = this.#catalog.settings;
    for (const path of listCopies(sessionPaths(root, row, row.sessionId), disk)) {
      const made = await this.#redactFile(path, isItself);
      if (made !== null) await replaceWhole(disk, path, made.bytes, newId());
    }
  }

  #redactFile(path: string, isItself: boolean): Promise<Tombstones | null> {
    return this.#redactBytes(readWhole(this.#catalog.settings.disk, path) ?? none, isItself);
  }

  #redactBytes(bytes: Uint8Array, isItself: boolean): Promise<Tombstones | null> {
    return Slices.underLock().run(withTombstones(bytes, this.#sought, this.#catalog.now(), isItself));
  }
}

async function treeIn(bytes: Uint8Array): Promise<SessionTree> {
  const slices = Slices.underLock();
  return slices.run(SessionTree.growing(await slices.run(parsingSession(bytes))));
}

function placeName({ uid, state }: SessionRow): string {
  return `${uid} ${state === "trashed" ? state : "there"}`;
}

/**
 * Deletes blobs that nothing refers to anymore. Keeps a blob that has been put again, because the message that refers to
 * it might not have been written yet.
 */
async function dropBlobs(catalog: SessionCatalog, blobs: readonly FoundBlob[]): Promise<void> {
  const { ledger, attendance } = catalog.work;
  const withoutUsed = (hashes: readonly string[]) =>
    hashes.filter((sha256) => !runOn(ledger, attendance.attendant.isBlobInUse(sha256)));
  const named = withoutUsed([...new Set(blobs.map(({ sha256 }) => sha256))]);
  if (named.length === 0) return;
  const { disk, root } = catalog.settings;
  await catalog.feed.indexAll();
  // Logs that are not fully indexed must be read.
  const unsure = catalog.work.dirty().flatMap((uid) => catalog.work.byUid(uid) ?? []);
  const inTrash = blobsInTrash(root, disk);
  // Input might have been accepted in the meantime.
  const unused = new Set(withoutUsed(named));
  const left = blobs.filter((blob) => unused.has(blob.sha256) && isUnchanged(disk, blob));
  const places = new Map(left.map(({ folder, place }) => [folder, place]));
  for (const [folder, place] of places) {
    const here = unsure.filter((each) => each.home === place.home && each.agentId === place.agentId);
    const read = here.flatMap((each) =>
      hashesIn(Buffer.from(readWhole(disk, catalog.pathsOf(each).log) ?? none).toString("utf8")),
    );
    const used = new Set([...catalog.index.blobsIn(place.home, place.agentId), ...inTrash, ...read]);
    const unnamed = left.filter((blob) => blob.folder === folder && !used.has(blob.sha256));
    for (const { sha256 } of unnamed) disk.unlink(join(folder, sha256));
  }
}

/**
 * Permanently deletes a session in the trash. Returns `false` if it has been restored. The lock keeps it from being
 * restored during the purge. Files are durably deleted first and the claim on the ID last so that an interrupted purge
 * can be repeated.
 */
export async function purgeSession(
  catalog: SessionCatalog,
  row: SessionRow,
  check: (now: SessionRow) => void,
): Promise<boolean> {
  const { work, mover } = catalog;
  const blobs = await mover.underLock(row, undefined, async () => {
    const now = work.byUid(row.uid);
    if (now?.state !== "trashed") return null;
    check(now);
    await work.attendance.attendant.discardFiles([row.uid]);
    const found = await removeContent(catalog, row);
    work.forget([row.uid], { what: "session", name: row.uid, at: catalog.now() });
    return found;
  });
  if (blobs === null) return false;
  await eraseTraces(catalog, [row], blobs, [row.uid]);
  return true;
}

/** Deletes a session's files, and returns the blobs that it refers to. */
async function removeContent(catalog: SessionCatalog, row: SessionRow): Promise<FoundBlob[]> {
  const blobs = findBlobs(catalog.settings, [row], blobsIn(catalog, row));
  await catalog.mover.removeFiles(row);
  return blobs;
}

/** Deletes the blobs of purged sessions, and the bytes in the database files. */
async function eraseTraces(
  catalog: SessionCatalog,
  rows: readonly SessionRow[],
  blobs: readonly FoundBlob[],
  names: readonly string[],
): Promise<void> {
  await dropBlobs(catalog, blobs);
  await catalog.erase(rows, names);
  // A listing that was being written might have recreated the folder.
  await catalog.feed.untilIdle();
}

/**
 * Permanently deletes all of a user's data. Sessions are moved to the trash first so that no run starts. A session that
 * is created during the deletion is kept.
 */
export async function purgeUser(
  catalog: SessionCatalog,
  userId: string,
  home: string,
): Promise<SessionRow[]> {
  const { work, feed, mover } = catalog;
  const rows = trashUser(work, userId, catalog.now());
  for (const row of rows) {
    if (row.state === "trashed") continue;
    catalog.drop(row);
    await feed.service.remove(row.uid);
  }
  const uids = rows.map(({ uid }) => uid);
  await work.attendance.attendant.discardFiles(uids);
  const blobs: FoundBlob[] = [];
  for (const row of rows) {
    await mover.underLock(row, undefined, async () => {
      // Another call might have purged the session, and a new one might have its ID.
      if (work.byUid(row.uid) !== null) blobs.push(...(await removeContent(catalog, row)));
    });
  }
  await removeHome(catalog, userId, home, new Set(uids));
  const name = createHash("sha256").update(userId).digest("hex");
  work.forget(uids, { what: "user", name, at: catalog.now() }, userId);
  await eraseTraces(catalog, rows, blobs, [...uids, userId]);
  await removeHome(catalog, userId, home, new Set(uids));
  return rows;
}

/**
 * Returns the blobs that a session in the trash refers to. After an interrupted move, its log might still be in the old
 * location.
 */
function blobsIn(catalog: SessionCatalog, row: SessionRow): string[] {
  const places: SessionRow["state"][] = ["trashed", "live"];
  return places.flatMap((state) => {
    const bytes = readWhole(catalog.settings.disk, catalog.pathsOf({ ...row, state }).log);
    return bytes === null ? [] : hashesIn(Buffer.from(bytes).toString("utf8"));
  });
}

/** Deletes blobs, listings and the user's name while no session can be claimed in the user's folder. */
async function removeHome(
  { work, settings }: SessionCatalog,
  userId: string,
  home: string,
  purged: ReadonlySet<string>,
): Promise<void> {
  const { disk, root } = settings;
  const folder = join(root, home);
  const isRemoved = work.exclusively(() => {
    const isUsed = home === "" || work.countOtherUsers(home, userId) > 0;
    if (isUsed || work.ofUser(userId).some(({ uid }) => !purged.has(uid))) return false;
    disk.removeTree(join(folder, "agents"));
    disk.unlink(join(folder, "user.json"));
    // Another user's home might be inside this user's home.
    if (disk.list(folder).length === 0) disk.removeTree(folder);
    return true;
  });
  if (!isRemoved) return;
  const parent = join(folder, "..");
  for (const path of [folder, parent]) if (disk.isFolder(path)) await disk.syncFolder(path);
}

/** Erases the bytes of deleted rows in `work.db`, now or once no other process is reading the file. */
export function eraseRemoved(work: WorkDb): void {
  work.requestErase();
  const request = work.pendingErase();
  if (request !== null && work.ledger.scrub()) work.finishErase(request);
}
