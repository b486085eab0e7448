import { basename } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import { parseSession } from "../../core/parse-session.ts";
import { SessionTree } from "../../core/tree.ts";
import type { ListedSession } from "../contract.ts";
import type { Disk, DiskFile } from "./disk.ts";
import type { IndexDb, IndexState, Known } from "./index-db.ts";
import type { IndexedLines, IndexLookup } from "./index-lines.ts";
import { emptyIndexState, indexLines } from "./index-lines.ts";
import { indexDbName, sessionPaths } from "./layout.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";
import { headerOf, isVisible, recordOf } from "./work-db.ts";

const lineBreak = 0x0a;
const longestTurnMs = 20;

/**
 * Work that is done even after the deadline so that the lists of a small store are complete even on a busy machine.
 */
interface LeastWork {
  /** How many of the first marked sessions to index. */
  readonly sessions: number;
  /** Maximum total size of their logs. */
  readonly bytes: number;
}

const usualLeast: LeastWork = { sessions: 200, bytes: 256 * 1024 };
export const noLeast: LeastWork = { sessions: 0, bytes: 0 };

export interface CaughtUp {
  /** Marked sessions that are not fully indexed. Lost logs are excluded because waiting for them does not help. */
  readonly behind: number;
  /** The number of these sessions that failed and for which more time would not help. */
  readonly unreadable: number;
  /** Logs that are unreadable or lost. */
  readonly problems: readonly UnreadLog[];
}

/** The reason why a session is not fully indexed. */
type Unread = "time" | { readonly problem: string; readonly isLost: boolean };

export interface UnreadLog {
  readonly file: string;
  readonly problem: string;
}

export interface CatchUpLimits {
  readonly mostBytes?: number;
  readonly least?: LeastWork;
}

/** The databases and the folder that the index is built from. */
export interface IndexFiles {
  readonly work: WorkDb;
  readonly index: IndexDb;
  readonly disk: Disk;
  readonly root: string;
  /** How much of a log is indexed per transaction. Limits how long other writers wait. */
  readonly chunkBytes: number;
}

/** Updates the index from the logs. Reads only the new part of each log. */
export class Indexer {
  readonly #files: IndexFiles;

  constructor(files: IndexFiles) {
    this.#files = files;
  }

  get #work(): WorkDb {
    return this.#files.work;
  }

  get #index(): IndexDb {
    return this.#files.index;
  }

  /**
   * Indexes marked sessions until a deadline (in terms of `performance.now()`), but always at least `least`.
   * `onSession` is called for each session. A log that has grown by more than `mostBytes` is skipped because indexing
   * the words of a single long entry can take seconds.
   */
  catchUp(
    until: number,
    onSession: (row: SessionRow | null) => void = () => undefined,
    { mostBytes = Number.POSITIVE_INFINITY, least = usualLeast }: CatchUpLimits = {},
  ): CaughtUp {
    const marked = this.#work.dirty();
    const problems: UnreadLog[] = [];
    let done = 0;
    let lost = 0;
    let bytes = 0;
    // After the deadline, indexes only what `least` still allows.
    const bound = (at: number) => {
      if (performance.now() <= until) return mostBytes;
      return at < least.sessions ? Math.min(mostBytes, least.bytes - bytes) : -1;
    };
    for (let next = 0; next < marked.length && bound(next) >= 0; ) {
      // Small sessions share a transaction, up to a time limit that keeps it short.
      const pause = performance.now() + longestTurnMs;
      this.#index.exclusively(() => {
        do {
          const uid = marked[next++] as string;
          const unread = this.#tryBringUp(uid, { until, mostBytes: bound(next - 1) }, (row, grown) => {
            bytes += grown;
            onSession(row);
          });
          if (unread === null) done += 1;
          else if (unread !== "time") {
            problems.push({ file: this.#fileOf(uid), problem: unread.problem });
            if (unread.isLost) lost += 1;
          }
        } while (next < marked.length && performance.now() <= pause && bound(next) >= 0);
      });
    }
    return { behind: marked.length - done - lost, unreadable: problems.length - lost, problems };
  }

  /**
   * Returns `null` if the session is fully indexed. An unreadable log does not prevent other logs from being indexed.
   */
  #tryBringUp(
    uid: string,
    { until, mostBytes }: { readonly until: number; readonly mostBytes: number },
    onSession: (row: SessionRow | null, grown: number) => void,
  ): Unread | null {
    try {
      // Marks stay until a checkpoint, so most marked sessions are already indexed.
      const row = this.#work.byUid(uid);
      if (this.#isUpToDate(uid, row)) return null;
      const grown = this.#bytesBehind(uid, row);
      if (grown > mostBytes) return "time";
      onSession(row, Math.max(0, grown));
      return this.#bringUp(uid, row, until) ? null : "time";
    } catch (error) {
      // A folder or pipe in place of a log is not a loss, because the log might reappear.
      const isLost =
        error instanceof SkeinError &&
        error.code === "unreadable_file" &&
        this.#files.disk.stat(this.#fileOf(uid)) === null;
      return { problem: (error as Error).message || "it cannot be read", isLost };
    }
  }

  #bytesBehind(uid: string, row: SessionRow | null): number {
    if (row === null || !isVisible(row)) return 0;
    return (
      (this.#files.disk.stat(this.#logOf(row))?.size ?? 0) - (this.#index.knownBytes(uid)?.logBytes ?? 0)
    );
  }

  bringUp(uid: string): void {
    this.#bringUp(uid, this.#work.byUid(uid), Number.POSITIVE_INFINITY);
  }

  /** Whether the whole log is indexed. For a deleted session, whether nothing is indexed. */
  isUpToDate(uid: string): boolean {
    return this.#isUpToDate(uid, this.#work.byUid(uid));
  }

  #isUpToDate(uid: string, row: SessionRow | null): boolean {
    const known = this.#index.knownBytes(uid);
    if (row === null || !isVisible(row)) return known === null;
    const log = this.#files.disk.stat(this.#logOf(row));
    if (log === null) return row.state === "pending" && known?.logBytes === 0;
    return known !== null && known.identity === log.identity && known.logBytes === log.size;
  }

  /** Returns `false` if the time ran out. */
  #bringUp(uid: string, row: SessionRow | null, until: number): boolean {
    if (row === null || !isVisible(row)) {
      if (this.#index.knownBytes(uid) !== null) this.#index.remove(uid);
      return true;
    }
    const log = this.#files.disk.openExisting(this.#logOf(row));
    if (log === null) {
      // A session is marked as trashed before its log is moved, so its current row shows whether it has been removed.
      const now = this.#work.byUid(uid);
      if (now === null || !isVisible(now)) return this.#bringUp(uid, now, until);
      this.#begin(row);
      return true;
    }
    try {
      for (let isFirst = true; ; isFirst = false) {
        const more = this.#index.exclusively(() => this.#takeChunk(row, log, isFirst));
        if (!more) return true;
        if (performance.now() > until) return false;
      }
    } finally {
      log.close();
    }
  }

  /** Indexes a session whose log does not exist yet. */
  #begin(row: SessionRow): void {
    if (row.state !== "pending") {
      // The path is omitted because readers must not learn where files are stored.
      const lost = { file: basename(this.#logOf(row)), problem: "it is missing" };
      throw new SkeinError("unreadable_file", {
        ...lost,
        advice: "Restore it from a backup. To see where it was, run skein doctor",
      });
    }
    const header = headerOf(row);
    const fold: IndexState = { ...emptyIndexState, header, meta: row.first.meta };
    this.#put(row, { logBytes: 0, identity: "", fold });
  }

  /** Returns `true` if there is more to index. */
  #takeChunk(row: SessionRow, log: DiskFile, isFirst: boolean): boolean {
    const { size, identity } = log.stat();
    const known = this.#knownOf(row, identity, size);
    const bytes = wholeLines(log, known.logBytes, size, this.#files.chunkBytes);
    const logBytes = known.logBytes + bytes.length;
    // The row (for example, its key) might have changed even if the log has not.
    if (bytes.length === 0) {
      if (isFirst) this.#put(row, { ...known, identity });
      return false;
    }
    const reading = { session: parseSession(bytes), offset: known.logBytes };
    const folded = indexLines(known.fold, reading, this.#lookup(row)) ?? this.#indexWhole(row, log, logBytes);
    for (const { id, value } of folded.states) this.#index.putState(row.uid, id, value);
    for (const entry of folded.entries) {
      if (this.#index.putEntry(row.uid, entry)) this.#index.putWords(row, entry);
    }
    this.#put(row, { logBytes, identity, fold: folded.fold });
    return logBytes < size && bytes.length >= this.#files.chunkBytes / 2;
  }

  /**
   * A log that is shorter than before, or that is a different file, has been rewritten, so it is indexed from the
   * start.
   */
  #knownOf(row: SessionRow, identity: string, size: number): Known {
    const known = this.#index.known(row.uid);
    const isSame = known !== null && (known.identity === identity || known.logBytes === 0);
    if (isSame && known.logBytes <= size && known.logBytes > 0) return known;
    if (known !== null) this.#index.remove(row.uid);
    return { logBytes: 0, identity, fold: emptyIndexState };
  }

  /** If lines are damaged or parents are missing, the tree of the whole log is needed. */
  #indexWhole(row: SessionRow, log: DiskFile, logBytes: number): IndexedLines {
    this.#index.remove(row.uid);
    const session = parseSession(log.read(0, logBytes));
    const tree = SessionTree.from(session, { lostHeader: { id: row.sessionId } });
    const parentOf = ({ id }: { id: string }) => tree.parentOf(id)?.id ?? null;
    const lookup = { ...this.#lookup(row), placed: () => null, idAt: () => null };
    const folded = indexLines(emptyIndexState, { session, offset: 0, parentOf }, lookup) as IndexedLines;
    const tip = folded.entries.find(({ id }) => id === tree.tipId);
    const fold: IndexState = {
      ...folded.fold,
      tip:
        tip === undefined ? null : { id: tip.id, position: tip.position, leaf: tip.leaf, state: tip.state },
      leafId: tree.leafId,
      chain: { offset: logBytes, position: tree.size },
      isOdd: true,
    };
    return { ...folded, fold };
  }

  #put(row: SessionRow, known: Known): void {
    this.#index.exclusively(() => this.#index.putSession(listedOf(row, known), row.home, known));
  }

  #lookup({ uid, createdAt }: SessionRow): IndexLookup {
    return {
      createdAt,
      placed: (entryId) => this.#index.placed(uid, entryId),
      idAt: (position) => this.#index.idAt(uid, position),
      state: (id) => this.#index.state(uid, id),
    };
  }

  #fileOf(uid: string): string {
    const row = this.#work.byUid(uid);
    return row === null ? indexDbName : this.#logOf(row);
  }

  #logOf(row: SessionRow): string {
    return sessionPaths(this.#files.root, row, row.sessionId).log;
  }
}

/** Returns at least one complete line, starting at a position. */
function wholeLines(log: DiskFile, from: number, size: number, atOnce: number): Uint8Array {
  for (let wanted = atOnce; ; wanted *= 4) {
    const bytes = log.read(from, Math.min(wanted, size - from));
    const end = bytes.lastIndexOf(lineBreak) + 1;
    if (end > 0 || from + bytes.length >= size) return bytes.subarray(0, end);
  }
}

function listedOf(row: SessionRow, { fold, logBytes }: Known): ListedSession {
  const record = recordOf(row, { ...fold, cwd: fold.header?.cwd ?? "" });
  return { ...record, digest: { ...fold.digest, bytes: logBytes } };
}
