import { createHash } from "node:crypto";
import { join } from "node:path";
import { parseSession } from "../../core/parse-session.ts";
import { SessionTree } from "../../core/tree.ts";
import type { Redaction } from "../contract.ts";
import { checkRedactable, linesOf, redactionOf, withTombstones } from "../redact.ts";
import { blobsInTrash, hashesIn } from "./blobs.ts";
import type { SessionCatalogue } from "./catalogue.ts";
import { readWhole, removeTreeDurably, replaceWhole } from "./disk-files.ts";
import { copiesBeside } from "./folders.ts";
import { blobsFolder, sessionPaths } from "./layout.ts";
import type { SessionRow } from "./work-db.ts";
import { isThere } from "./work-db.ts";

/** What is done for good: entries made tombstones wherever they were copied to, and users with all they had. */

type Lines = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

/** The session itself comes last: until then it says what is to be looked for, and the command can be given again. */
export async function redactEntries(
  catalogue: SessionCatalogue,
  row: SessionRow,
  entryIds: readonly string[],
): Promise<{ redaction: Redaction; changed: SessionRow[] }> {
  const wanted = await catalogue.using(row, (file) => {
    checkRedactable(file.whole, entryIds);
    return linesOf(file.readLog(0), new Set(entryIds));
  });
  const done: { tree: SessionTree; entryIds: readonly string[] }[] = [];
  const changed: SessionRow[] = [];
  for (const each of [...(await copiesOf(catalogue, row, entryIds)), row]) {
    const found = isThere(each)
      ? await redactLive(catalogue, each, wanted)
      : await redactTrashed(catalogue, each, wanted);
    await redactBeside(catalogue, each, wanted);
    if (found === null) continue;
    done.push(found);
    if (isThere(each)) changed.push(each);
  }
  await dropBlobs(catalogue, row, wanted);
  if (done.length > 0) await catalogue.feed.service.scrub(changed);
  return { redaction: redactionOf(done.toReversed()), changed };
}

/** The user's other sessions that have an entry of one of these ids, and all of the user's trash. */
async function copiesOf(
  { feed, index, work }: SessionCatalogue,
  row: SessionRow,
  entryIds: readonly string[],
): Promise<SessionRow[]> {
  await feed.bringUpAll();
  const uids = new Set(entryIds.flatMap((id) => index.withEntry(id)));
  return work
    .ofUser(row.userId)
    .filter((each) => each.uid !== row.uid && (each.state === "trashed" || uids.has(each.uid)));
}

async function redactLive(catalogue: SessionCatalogue, row: SessionRow, wanted: Lines) {
  const found = await catalogue.using(row, async (file) => {
    const entryIds: string[] = [];
    await file.rewrite((bytes) => {
      const made = withTombstones(bytes, wanted, catalogue.now());
      if (made === null) return null;
      entryIds.push(...made.entryIds);
      catalogue.work.markDirty(row.uid);
      return made.bytes;
    });
    return entryIds.length === 0 ? null : { tree: file.whole, entryIds };
  });
  if (found !== null) await catalogue.using(row, (file) => catalogue.bringUp(row, file));
  return found;
}

async function redactTrashed(catalogue: SessionCatalogue, row: SessionRow, wanted: Lines) {
  const { disk, newId } = catalogue.settings;
  const paths = catalogue.pathsOf(row);
  let entryIds: readonly string[] = [];
  let tree: SessionTree | null = null;
  await catalogue.moves.underLock(row, undefined, async () => {
    const made = withTombstones(readWhole(disk, paths.log) ?? new Uint8Array(0), wanted, catalogue.now());
    if (made === null) return;
    // Its working set is made anew when it is restored.
    disk.unlink(paths.working);
    await replaceWhole(disk, paths.log, made.bytes, newId());
    entryIds = made.entryIds;
    tree = SessionTree.from(parseSession(made.bytes));
  });
  return tree === null ? null : { tree: tree as SessionTree, entryIds };
}

/** Copies stay in the folder where the session was live, whether it is in the trash or not. */
async function redactBeside(catalogue: SessionCatalogue, row: SessionRow, wanted: Lines): Promise<void> {
  const { disk, newId, root } = catalogue.settings;
  for (const path of copiesBeside(sessionPaths(root, row, row.sessionId), disk)) {
    const made = withTombstones(readWhole(disk, path) ?? new Uint8Array(0), wanted, catalogue.now());
    if (made !== null) await replaceWhole(disk, path, made.bytes, newId());
  }
}

/** Blobs of what is gone that nothing else refers to. */
async function dropBlobs(
  { feed, index, settings }: SessionCatalogue,
  row: SessionRow,
  wanted: Lines,
): Promise<void> {
  const named = new Set([...wanted.values()].flatMap((line) => hashesIn(JSON.stringify(line))));
  if (named.size === 0 || (await feed.bringUpAll()) > 0) return;
  const { disk, root } = settings;
  const used = index.blobsIn(row.home, row.agentId);
  for (const sha256 of blobsInTrash(root, disk)) used.add(sha256);
  for (const sha256 of named) if (!used.has(sha256)) disk.unlink(join(blobsFolder(root, row), sha256));
}

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
