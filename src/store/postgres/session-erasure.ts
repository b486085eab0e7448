import { Slices } from "../../core/slices.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { ListedSession, Redaction, Scope } from "../contract.ts";
import { digestOfTree } from "../digest.ts";
import { trashedSession } from "../new-session.ts";
import type { RedactionTarget } from "../redact.ts";
import {
  checkRedactable,
  findRedacted,
  redactionOf,
  removedEntriesOf,
  withoutDisplayName,
  withTombstones,
} from "../redact.ts";
import { checkRemovedAt } from "../rules.ts";
import { hashesIn } from "../session-trees.ts";
import type { BlobBytes } from "./blobs.ts";
import type { Sql } from "./database.ts";
import { driveScript } from "./drive-script.ts";
import type { PlacedEntry } from "./entry-rows.ts";
import { insertEntries, parseTree, sessionBytes } from "./entry-rows.ts";
import { lookupText, userKey } from "./lookup-text.ts";
import type { SessionAccess } from "./session-access.ts";
import { recordOf, rowOfTree } from "./session-access.ts";
import type { SessionRow, StoredSession } from "./session-row.ts";
import { rowOf, storedColumns } from "./session-row.ts";
import { writeLocked } from "./session-writes.ts";

/** Permanently deletes a session in the trash, with its entries and state. */
export async function purgeSession(
  access: SessionAccess,
  scope: Scope,
  sessionId: string,
  ifRemovedAt: number | undefined,
): Promise<boolean> {
  const { database, feed, attendance } = access.parts;
  const userId = scope.userId ?? null;
  const trashed = await database.transact(userId, (sql) => access.lockTrashed(sql, scope, sessionId));
  if (trashed === null) return false;
  checkRemovedAt(trashed.removedAt ?? 0, ifRemovedAt);
  await attendance.attendant.discardFiles([trashed.session.uid]);
  const script = async (sql: Sql) => {
    const found = await access.lockTrashed(sql, scope, sessionId);
    if (found === null) return null;
    checkRemovedAt(found.removedAt ?? 0, ifRemovedAt);
    const { uid } = found.session;
    await driveScript(sql, attendance.attendant.purge([uid]));
    for (const table of ["entries", "entry_search", "state_values"])
      await sql(`DELETE FROM skein.${table} WHERE session_uid = $1 AND user_id = $2`, [uid, userKey(userId)]);
    await sql("DELETE FROM skein.sessions WHERE uid = $1 AND user_id = $2", [uid, userKey(userId)]);
    return found;
  };
  const row = await database.transact(userId, script, { locks: "runs", isLong: true });
  if (row === null) return false;
  access.forget(row.session);
  feed.publish({ type: "purged", session: trashedSession(row.session, row.removedAt) });
  return true;
}

/** Deletes all of a user's rows and returns the number of sessions. */
export async function purgeUserRows(access: SessionAccess, userId: string): Promise<number> {
  const { database, feed, attendance } = access.parts;
  const uids = "SELECT uid FROM skein.sessions WHERE user_id = $1";
  const listed = await database.read<{ uid: string }>(userId, uids, [userKey(userId)]);
  await attendance.attendant.discardFiles(listed.map(({ uid }) => uid));
  const script = async (sql: Sql) => {
    const purged = await sql<{ session: StoredSession }>("SELECT skein.purge_user($1) AS session", [
      userKey(userId),
    ]);
    const gone = purged.map(({ session }) => session.uid);
    await driveScript(sql, attendance.attendant.purge(gone, userId));
    return purged;
  };
  const found = await database.transact(userId, script, { locks: "runs", isLong: true });
  const rows = found.map((each) => rowOf(userId, each.session));
  for (const { session, removedAt } of rows) {
    access.forget(session);
    feed.publish({ type: "purged", session: trashedSession(session, removedAt) });
  }
  return rows.length;
}

/** A session with tombstones. */
interface RedactedSession {
  readonly row: SessionRow;
  readonly tree: SessionTree;
  readonly entryIds: readonly string[];
}

/** Redacts a session and all copies of its entries in one transaction, and then deletes their blobs. */
export async function redactEntries(
  access: SessionAccess,
  blobs: BlobBytes,
  scope: Scope,
  sessionId: string,
  entryIds: readonly string[],
): Promise<Redaction> {
  const { database, feed, attendance } = access.parts;
  const script = async (sql: Sql) => {
    const row = await access.require(sql, scope, sessionId, "erase");
    const bytes = await sessionBytes(sql, row);
    checkRedactable(await parseTree(bytes, access.treeOptions), entryIds);
    const sought = await new Slices().run(findRedacted(bytes, new Set(entryIds)));
    const redacted: RedactedSession[] = [];
    for (const each of [row, ...(await lockCopies(sql, row, sought))]) {
      const found = await redactSession(access, sql, each, sought, each === row);
      if (found !== null) redacted.push(found);
    }
    const owners = [row, ...redacted.map((each) => each.row)];
    const removed = removedEntriesOf(
      sought,
      owners.map(({ session }) => session.uid),
    );
    await driveScript(sql, attendance.attendant.redact(removed));
    return { redacted, owners, sought, removed };
  };
  const options = { locks: "runs", isLong: true } as const;
  const done = await database.transact(scope.userId ?? null, script, options);
  const { redacted, owners, sought, removed } = done;
  await attendance.attendant.discardFiles(removed);
  await deleteBlobs(access, blobs, owners, sought);
  for (const { row } of redacted) {
    if (row.removedAt !== null) continue;
    access.remember(row);
    feed.publish({ type: "redacted", session: recordOf(row.session) });
  }
  return redactionOf(redacted.filter((each) => each.entryIds.length > 0));
}

/** Deletes the blobs of redacted entries, unless unread input or another entry of the same agent refers to them. */
async function deleteBlobs(
  { parts }: SessionAccess,
  blobs: BlobBytes,
  rows: readonly SessionRow[],
  { lines }: RedactionTarget,
): Promise<void> {
  const hashes = [...new Set(lines.flatMap((line) => hashesIn(JSON.stringify(line))))];
  if (hashes.length === 0) return;
  const owners = new Map(rows.map(({ session }) => [session.agentId, session]));
  for (const { userId, agentId } of owners.values()) {
    const findUnused = (sql: Sql) =>
      sql<{ hash: string }>(
        `SELECT hash FROM unnest($3::text[]) AS hash WHERE NOT EXISTS (
         SELECT FROM skein.sessions AS s JOIN skein.entries AS e ON e.session_uid = s.uid
         WHERE s.user_id = $1 AND s.agent_id = $2 AND e.user_id = $1 AND strpos(e.line, hash) > 0)`,
        [userKey(userId), agentId, hashes],
      );
    const unused = await parts.database.transact(userId, findUnused, { isRepeatable: true, isLong: true });
    const isUnread = ({ hash }: { hash: string }) =>
      parts.database.transact(userId, (sql) =>
        driveScript(sql, parts.attendance.attendant.isBlobInUse(hash)),
      );
    const gone: string[] = [];
    for (const each of unused) if (!(await isUnread(each))) gone.push(each.hash);
    if (gone.length > 0) await blobs.delete({ userId, agentId }, gone);
  }
}

/**
 * Locks the user's other sessions that contain one of the entries, including the trash. A fork holds a lock on its
 * source until it is stored, so the search is repeated until it finds nothing new.
 */
async function lockCopies(
  sql: Sql,
  { session }: SessionRow,
  { ids }: RedactionTarget,
): Promise<SessionRow[]> {
  const user = userKey(session.userId);
  const locked = new Map<string, SessionRow>();
  for (;;) {
    const rows = await sql<StoredSession>(
      `SELECT ${storedColumns} FROM skein.sessions WHERE user_id = $1 AND uid <> ALL ($3) AND uid IN (
         SELECT session_uid FROM skein.entries WHERE user_id = $1 AND entry_id = ANY ($2)
       ) ORDER BY uid FOR UPDATE`,
      [user, [...ids].map(lookupText), [session.uid, ...locked.keys()]],
    );
    if (rows.length === 0) return [...locked.values()];
    for (const row of rows) locked.set(row.uid, rowOf(session.userId, row));
  }
}

async function redactSession(
  access: SessionAccess,
  sql: Sql,
  row: SessionRow,
  sought: RedactionTarget,
  isItself: boolean,
): Promise<RedactedSession | null> {
  const bytes = await sessionBytes(sql, row);
  const found = await new Slices().run(withTombstones(bytes, sought, access.parts.clock.now(), isItself));
  if (found === null) return null;
  const tree = await parseTree(found.bytes, access.treeOptions);
  const meta = withoutDisplayName(row.session.meta, sought.texts) ?? row.session.meta;
  const { name, leafId } = tree;
  const digest = digestOfTree(tree, row.session.createdAt);
  const session: ListedSession = { ...row.session, meta, name, leafId, digest };
  const [grown, placed] = rowOfTree(session, tree);
  const { removedAt, holderRun, fence } = row;
  const after = { ...grown, removedAt, holderRun, fence, revision: row.revision + 1 };
  await replaceLines(sql, after, placed);
  await replaceHeader(sql, row, after);
  await writeLocked(sql, row, { row: after, placed: [] });
  return { row: after, tree, entryIds: found.entryIds };
}

/** The header of a session that was migrated from a folder contains the session's first display name. */
async function replaceHeader(sql: Sql, before: SessionRow, after: SessionRow): Promise<void> {
  const [old, header] = [JSON.stringify(before.header), JSON.stringify(after.header)];
  if (old === header) return;
  const text = "UPDATE skein.sessions SET header = $3 WHERE uid = $1 AND user_id = $2";
  await sql(text, [after.session.uid, userKey(after.session.userId), header]);
}

/** Replaces the lines that changed, and their words in the search. */
async function replaceLines(
  sql: Sql,
  { session }: SessionRow,
  placed: readonly PlacedEntry[],
): Promise<void> {
  const { uid, userId } = session;
  const user = userKey(userId);
  const stored = await sql<{ seq: number; line: string }>(
    "SELECT seq, line FROM skein.entries WHERE session_uid = $1 AND user_id = $2",
    [uid, user],
  );
  const lines = new Map(stored.map(({ seq, line }) => [seq, line]));
  const changed = placed.filter(({ place, line }) => lines.get(place.seq) !== line);
  const seqs = changed.map(({ place }) => place.seq);
  for (const table of ["entries", "entry_search"])
    await sql(`DELETE FROM skein.${table} WHERE session_uid = $1 AND user_id = $2 AND seq = ANY ($3)`, [
      uid,
      user,
      seqs,
    ]);
  await insertEntries(sql, session, changed);
}
