import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { keptBehindDamage } from "../../core/context.ts";
import type { Compaction, CorruptReason, Entry } from "../../core/entries.ts";
import { encodeEntry, isCorrupt, keepExact, withParentId } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { createIdSource } from "../../core/ids.ts";
import { splitLines } from "../../core/lines.ts";
import type { ParsedSession } from "../../core/parse-session.ts";
import { parseSession, parsingSession } from "../../core/parse-session.ts";
import { Slices } from "../../core/slices.ts";
import { SessionTree } from "../../core/tree.ts";
import { Database } from "./database.ts";
import type { Disk } from "./disk.ts";
import { readWhole, realDisk, refuseSpecialFile, replaceWhole } from "./disk.ts";
import { workDbName } from "./layout.ts";
import { WriteLock } from "./write-lock.ts";

const lockTimeoutMs = 10_000;

/** Repairs one session file under its lock. */
export async function repairSessionFile(path: string): Promise<RepairReport> {
  const newToken = createIdSource();
  const settings = { disk: realDisk, clock: systemClock, newToken };
  return withFileLock(resolve(path), () => repairFile(path, settings));
}

/**
 * Runs `act` under the lock of a file that belongs to no store. A stale lock is taken over in a transaction, using a
 * database that all processes of this OS user share.
 */
export async function withFileLock<T>(path: string, act: () => Promise<T>): Promise<T> {
  const folder = join(tmpdir(), `skein-${userInfo().uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const database = new Database(join(folder, "locks.db"), "PRAGMA journal_mode = WAL;", []);
  const lock = new WriteLock(`${path}.lock`, {
    disk: realDisk,
    clock: systemClock,
    timeoutMs: lockTimeoutMs,
    newToken: createIdSource(),
    exclusively: (work) => database.exclusively(work),
    sleep: async (ms) => void (await sleep(ms)),
  });
  try {
    await lock.acquire();
    return await act();
  } finally {
    lock.release();
    database.close();
  }
}

/** The result of a repair. */
interface RepairReport {
  readonly file: string;
  readonly damaged: readonly { readonly line: number; readonly reason: CorruptReason }[];
  readonly headerRebuilt: boolean;
  /** Entries that received a new parent because their original parent was on a damaged line. */
  readonly bridged: readonly string[];
  /** Number of entries in the repaired file. */
  readonly kept: number;
  /** The copy of the original, or `null` if nothing was damaged and the file is unchanged. */
  readonly backup: string | null;
}

interface RepairSettings {
  readonly disk: Disk;
  readonly clock: Clock;
  newToken(): string;
}

/**
 * Rewrites a session file without its damaged lines and keeps a copy of the original. Intact lines stay unchanged,
 * except that parents on damaged lines are replaced. The caller holds the file's lock. A file that is not a session is
 * rejected and left unchanged.
 */
async function repairFile(path: string, settings: RepairSettings): Promise<RepairReport> {
  const { disk, clock, newToken } = settings;
  refuseSpecialFile(path);
  refuseStoreFile(path);
  const bytes = readWhole(disk, path);
  if (bytes === null) {
    throw new SkeinError("not_found", {
      what: "File",
      name: path,
      advice: "Check the path; relative paths are resolved against the working directory",
    });
  }
  const session = parseSession(bytes);
  const problem = notSessionReason(session);
  if (problem !== null) throw new SkeinError("not_a_session", { file: path, problem });
  const tree = SessionTree.from(session, { lostHeader: { id: idFromName(path) } });
  const damaged = session.lines.filter(isCorrupt).map(({ line, reason }) => ({ line, reason }));
  const bridged = tree.diagnostics
    .filter(({ code }) => code === "bridged_parent")
    .map(({ entryId = "" }) => entryId);
  const headerRebuilt = session.header === null;
  const report = { file: path, damaged, headerRebuilt, bridged, kept: tree.size };
  if (damaged.length === 0 && !headerRebuilt) return { ...report, backup: null };
  const repaired = Buffer.from(repairedText(bytes, session, tree));
  const backup = `${path}.bak-${process.pid}-${clock.now()}`;
  await replaceWhole(disk, backup, bytes, newToken());
  await replaceWhole(disk, path, repaired, newToken());
  return { ...report, backup };
}

/** Rejects a file in a store because a store reads its logs by position and repairs them under its own locks. */
function refuseStoreFile(path: string): void {
  const whole = existsSync(path) ? realpathSync(path) : resolve(path);
  if (!/[/\\](?:sessions|trash[/\\][^/\\]+)[/\\][^/\\]+$/.test(whole)) return;
  for (let folder = dirname(whole); folder !== dirname(folder); folder = dirname(folder)) {
    if (!existsSync(join(folder, workDbName))) continue;
    throw new SkeinError("read_only", {
      name: path,
      problem: `it belongs to the store in ${folder}, which repairs it itself; run \`skein sessions repair <session> --dir ${folder}\` to see what is damaged`,
    });
  }
}

function repairedText(bytes: Uint8Array, session: ParsedSession, tree: SessionTree): string {
  const bridged = new Set(
    tree.diagnostics.filter(({ code }) => code === "bridged_parent").map(({ entryId }) => entryId),
  );
  // Lines without an ID or parent are identified by their position. The position changes when a line is removed, so
  // these lines are written as version 3.
  if (session.diagnostics.some(({ code }) => code === "migrated")) {
    const entries = session.lines.filter((line) => !isCorrupt(line)) as readonly Entry[];
    const lines = entries.map((entry) => encodeEntry(changedEntry(entry, bridged, tree) ?? entry));
    return `${[JSON.stringify(tree.header), ...lines].join("\n")}\n`;
  }
  const linesWith = (code: string) =>
    new Set(session.diagnostics.filter((each) => each.code === code).map(({ line }) => line));
  const [damaged, foreign] = [linesWith("corrupt_line"), linesWith("foreign_line")];
  const before: string[] = [];
  const lines = session.header === null ? [JSON.stringify(tree.header)] : [];
  const byOffset = new Map(session.places.map(({ offset }, at) => [offset, session.lines[at]]));
  for (const { line, offset, text } of splitLines(bytes)) {
    if (foreign.has(line)) before.push(text ?? "");
    else if (text !== null && !damaged.has(line)) {
      const entry = byOffset.get(offset);
      const changed = entry === undefined || isCorrupt(entry) ? null : changedEntry(entry, bridged, tree);
      lines.push(changed === null ? text : encodeEntry(changed));
    }
  }
  return `${[...before, ...lines].join("\n")}\n`;
}

/**
 * Returns the entry with its new parent or first kept entry. Returns `null` if it is unchanged, or if it is a second
 * entry with the same ID.
 */
function changedEntry(
  entry: Entry,
  bridged: ReadonlySet<string | undefined>,
  tree: SessionTree,
): Entry | null {
  if (tree.entry(entry.id) !== entry) return null;
  const kept = entry.type === "compaction" ? keptEntry(tree, entry) : null;
  if (!bridged.has(entry.id) && kept === null) return null;
  const moved = withParentId(entry, tree.parentOf(entry.id)?.id ?? null);
  if (kept === null || moved.type !== "compaction") return moved;
  const compaction: Compaction = { ...moved, firstKeptEntryId: kept };
  keepExact(compaction, entry);
  return compaction;
}

/**
 * Returns a compaction's new first kept entry if the original is lost. Returns `null` if the original exists, or if
 * none of the kept entries remain.
 */
function keptEntry(tree: SessionTree, compaction: Compaction): string | null {
  if (compaction.firstKeptEntryId === undefined || tree.entry(compaction.firstKeptEntryId) !== null)
    return null;
  const path = tree.path(compaction.id).slice(0, -1);
  return path[keptBehindDamage(path, compaction)]?.id ?? null;
}

/**
 * Explains why a file is not a session, or returns `null` if it is one. Without a header, at least one entry must be
 * valid.
 */
export function notSessionReason(session: ParsedSession): string | null {
  if (session.header !== null) return null;
  if (session.lines.some((line) => !isCorrupt(line) && line.type !== "opaque")) return null;
  const empty = session.lines.length === 0 && session.diagnostics.every(({ line }) => line === undefined);
  return empty ? "it is empty" : "none of its lines is a session header or an entry";
}

/** Parses `<time>_<id>.jsonl`, as pi names its files, or `<id>.jsonl`. */
export function idFromName(path: string): string {
  const stem = basename(path).replace(/(\.log)?\.jsonl$/, "");
  return /^\d{4}-\d\d-\d\dT[\d-]+Z_(.+)$/.exec(stem)?.[1] ?? stem;
}

/**
 * Reads a session file in chunks. Damage is reported in the tree's diagnostics. Other kinds of files are rejected.
 * `signal` aborts the read.
 */
export async function readSessionFile(path: string, signal?: AbortSignal): Promise<SessionTree> {
  const slices = new Slices(signal);
  const session = await slices.run(parsingSession(await bytesOf(path)));
  const problem = notSessionReason(session);
  if (problem !== null) throw new SkeinError("not_a_session", { file: path, problem });
  return slices.run(SessionTree.growing(session, { lostHeader: { id: idFromName(path) } }));
}

async function bytesOf(path: string): Promise<Uint8Array> {
  refuseSpecialFile(path);
  try {
    return await readFile(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") {
      const advice = "Check the path; relative paths are resolved against the working directory";
      throw new SkeinError("not_found", { what: "File", name: path, advice }, { cause: error });
    }
    const folder = code === "EISDIR";
    const problem = folder ? "it is a folder" : message;
    if (code === "ERR_FS_FILE_TOO_LARGE") throw new SkeinError("too_large", { what: path }, { cause: error });
    const advice = folder
      ? "Name one of the .jsonl files in it"
      : "Check that you have permission to read it";
    throw new SkeinError("unreadable_file", { file: path, problem, advice }, { cause: error });
  }
}
