import { createHash } from "node:crypto";
import { SkeinError } from "../../core/errors.ts";
import type { SqlRow } from "../../core/script.ts";
import type { LedgerTable, MigrationSource, MigrationTarget, StoredBlob } from "./contract.ts";
import type { Fingerprint } from "./fingerprint.ts";
import { fingerprintSession, fingerprintTable, rowsAtOnce } from "./fingerprint.ts";
import { ledgerTables } from "./ledger-tables.ts";

/** The stages of a migration, in order. */
export type MoveStage = "checking" | "sessions" | "blobs" | "rows";

export interface MoveOptions {
  readonly from: MigrationSource;
  readonly to: MigrationTarget;
  /** Called after each step of a stage. */
  progress(stage: MoveStage, done: number, total: number): void;
}

export interface MoveResult {
  readonly sessions: number;
  readonly entries: number;
  readonly blobs: number;
  /** The number of rows by table. */
  readonly rows: Readonly<Record<string, number>>;
  /** Whether an earlier attempt was continued. */
  readonly isResumed: boolean;
}

const uidsAtOnce = 500;

/**
 * Copies everything to an empty store, then reads the copy back to compare it with the source. The source must have
 * passed `checkSource` and is never changed. An interrupted attempt is continued: anything it copied that differs from
 * the source is copied again.
 */
export async function moveStore(options: MoveOptions): Promise<MoveResult> {
  const { from, to } = options;
  await to.checkIdle();
  const mark = await from.mark();
  const isResumed = await to.begin(await from.identify(), from.name);
  const known = isResumed ? await checkCopied(options) : new Map<string, number>();
  const { sessions, entries } = await moveSessions(options, known);
  const blobs = await moveBlobs(options);
  const rows = await moveTables(options);
  await moveFacts(options);
  await from.checkIdle();
  if ((await from.mark()) !== mark) throw changedError(from.name);
  await to.finish();
  return { sessions, entries, blobs, rows, isResumed };
}

/**
 * Throws `conflict` if the source is in use or has runs that have not ended. Such a run cannot be moved, because it is
 * bound to the process that executes it and to the sessions that wait for it.
 */
export async function checkSource(reader: MigrationSource): Promise<void> {
  await reader.checkIdle();
  const open = await reader.openRuns();
  if (open.size === 0) return;
  const counts = [...open].map(([state, count]) => `${count} ${state}`).join(", ");
  throw new SkeinError("conflict", {
    problem: `${reader.name} has runs that have not ended: ${counts}`,
    advice:
      "Start its gateway, let the runs end or abort them (`skein runs ls`, `skein runs abort`), stop the gateway, then run the same command again",
  });
}

/**
 * Compares the sessions that an earlier attempt copied, and removes those that differ, because the source might have
 * been used since. Returns the number of entries in each remaining session.
 */
async function checkCopied({ from, to, progress }: MoveOptions): Promise<Map<string, number>> {
  const total = await to.countSessions();
  const known = new Map<string, number>();
  let done = 0;
  for await (const uid of uidsIn(to)) {
    const [source, copy] = [await fingerprintSession(from, uid), await fingerprintSession(to, uid)];
    if (source !== null && isSame(source, copy)) known.set(uid, source.count);
    else {
      const session = await to.session(uid);
      if (session !== null) await to.removeSession(session);
    }
    progress("checking", ++done, total);
  }
  return known;
}

async function moveSessions(
  { from, to, progress }: MoveOptions,
  known: ReadonlyMap<string, number>,
): Promise<{ readonly sessions: number; readonly entries: number }> {
  const total = await from.countSessions();
  let [sessions, entries] = [0, 0];
  for await (const uid of uidsIn(from)) {
    entries += known.get(uid) ?? (await moveSession(from, to, uid));
    progress("sessions", ++sessions, total);
  }
  const stored = await to.countSessions();
  if (stored !== sessions) throw differenceError("the number of sessions", sessions, stored);
  return { sessions, entries };
}

async function moveSession(from: MigrationSource, to: MigrationTarget, uid: string): Promise<number> {
  const session = await from.session(uid);
  if (session === null) throw changedError(from.name);
  await to.putSession(session, () => from.lines(session), await from.states(session));
  const [source, copy] = [await fingerprintSession(from, uid), await fingerprintSession(to, uid)];
  if (source !== null && isSame(source, copy)) return source.count;
  throw differenceError(`the session ${session.key} (${session.sessionId})`, source?.count, copy?.count);
}

async function* uidsIn(reader: MigrationSource): AsyncGenerator<string> {
  for (let last = ""; ; ) {
    const uids = await reader.uidsAfter(last, uidsAtOnce);
    yield* uids;
    const next = uids.at(-1);
    if (next === undefined) return;
    last = next;
  }
}

async function moveBlobs({ from, to, progress }: MoveOptions): Promise<number> {
  const total = await from.countBlobs();
  let done = 0;
  for await (const blob of from.blobs()) {
    const bytes = await from.blob(blob);
    if (!hasHash(bytes, blob)) throw damagedBlob(from.name, blob);
    if (!hasHash(await to.blob(blob), blob)) {
      await to.putBlob(blob, bytes);
      if (!hasHash(await to.blob(blob), blob)) throw differenceError(`the blob ${blob.sha256}`);
    }
    progress("blobs", ++done, total);
  }
  return done;
}

function hasHash(bytes: Uint8Array | null, { sha256 }: StoredBlob): bytes is Uint8Array {
  return bytes !== null && createHash("sha256").update(bytes).digest("hex") === sha256;
}

async function moveTables(options: MoveOptions): Promise<Record<string, number>> {
  const { from, progress } = options;
  const counts = new Map<string, number>();
  for (const table of ledgerTables) counts.set(table.name, await from.countRows(table));
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  let before = 0;
  for (const table of ledgerTables) {
    const start = before;
    const { count } = await moveTable(options, table, (done) => progress("rows", start + done, total));
    before += count;
  }
  return Object.fromEntries(counts);
}

/** Continues after the last row that is already there. If the rows then differ, copies all of them again. */
async function moveTable(
  { from, to }: MoveOptions,
  table: LedgerTable,
  progress: (done: number) => void,
): Promise<Fingerprint> {
  const columns = await from.columns(table);
  if (columns.length === 0) return { count: 0, sha256: "" };
  const source = await fingerprintTable(from, table, columns);
  const isThere = (await to.countRows(table)) > 0;
  await copyRows(from, to, table, columns, progress);
  let copy = await fingerprintTable(to, table, columns);
  if (isThere && !isSame(source, copy)) {
    await to.deleteRows(table);
    await copyRows(from, to, table, columns, progress);
    copy = await fingerprintTable(to, table, columns);
  }
  if (!isSame(source, copy)) {
    const row = await findDifference(from, to, table, columns);
    throw differenceError(`${row}the table ${table.name}`, source.count, copy.count);
  }
  if (table.isNumbered) await to.setLastNumber(table, await from.lastNumber(table));
  return source;
}

async function copyRows(
  from: MigrationSource,
  to: MigrationTarget,
  table: LedgerTable,
  columns: readonly string[],
  progress: (done: number) => void,
): Promise<void> {
  let done = await to.countRows(table);
  for (let after: SqlRow | null = await to.lastRow(table, columns); ; ) {
    const rows: readonly SqlRow[] = await from.rowsAfter(table, columns, after, rowsAtOnce);
    if (rows.length > 0) await to.insertRows(table, columns, rows);
    done += rows.length;
    progress(done);
    after = rows.at(-1) ?? null;
    if (rows.length < rowsAtOnce) return;
  }
}

/** Identifies the first differing row by its key, for example `the row seq=5 of `. */
async function findDifference(
  from: MigrationSource,
  to: MigrationSource,
  table: LedgerTable,
  columns: readonly string[],
): Promise<string> {
  for (let after: SqlRow | null = null; ; ) {
    const source: readonly SqlRow[] = await from.rowsAfter(table, columns, after, rowsAtOnce);
    const copy: readonly SqlRow[] = await to.rowsAfter(table, columns, after, rowsAtOnce);
    for (const [index, wanted] of [...source, undefined].entries()) {
      const found = copy[index];
      if (columns.every((column) => wanted?.[column] === found?.[column])) continue;
      const row = wanted ?? found;
      return `the row ${table.key.map((column) => `${column}=${row?.[column]}`).join(", ")} of `;
    }
    after = source.at(-1) ?? null;
    if (after === null) return "";
  }
}

async function moveFacts({ from, to }: MoveOptions): Promise<void> {
  const facts = await from.facts();
  await to.putFacts(facts);
  const stored = await to.facts();
  if (stored.size !== facts.size) throw differenceError("the facts", facts.size, stored.size);
  for (const [name, value] of facts)
    if (stored.get(name) !== value) throw differenceError(`the fact ${name}`);
}

function isSame(source: Fingerprint, copy: Fingerprint | null): boolean {
  return source.count === copy?.count && source.sha256 === copy.sha256;
}

function differenceError(what: string, expected?: number, found?: number): SkeinError {
  const counts = expected === found ? "" : ` (${expected ?? 0} expected, ${found ?? 0} found)`;
  return new SkeinError("conflict", {
    problem: `The copy of ${what} differs from the source${counts}`,
    advice:
      "The source is unchanged and can still be used. Run the same command again, and report this error if it happens again",
  });
}

function changedError(name: string): SkeinError {
  return new SkeinError("conflict", {
    problem: `${name} was changed during the migration`,
    advice: "Stop every process that uses it, then run the same command again",
  });
}

function damagedBlob(name: string, { agentId, sha256 }: StoredBlob): SkeinError {
  return new SkeinError("unreadable_file", {
    file: `The blob ${sha256} of agent ${agentId} in ${name}`,
    problem: "it is damaged",
    advice: "Restore it from a backup or delete it, then run the same command again",
  });
}
