import { basename, dirname, join } from "node:path";
import { within } from "../../core/concurrency.ts";
import { codeOf } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { Scope, SessionRecord } from "../contract.ts";
import { decodeCursor, listPage, sessionLimit } from "../list-query.ts";
import { inScope } from "../rules.ts";
import type { EveryUser } from "../work.ts";
import type { BackupDone, BackupOptions } from "./backup.ts";
import { backupFiles } from "./backup.ts";
import { sweepBlobs } from "./blobs.ts";
import type { CheckFinding, Progress } from "./check.ts";
import { checkFiles } from "./check.ts";
import { appendWhole, readWhole, realDisk } from "./disk.ts";
import { countSessions, everyUser, listSessions, userFigures } from "./index-lists.ts";
import { readSessionFile } from "./lone-file.ts";
import type { StoreFolder } from "./rebuild.ts";
import type { SessionCatalog } from "./session-catalog.ts";

type SessionOwner = Pick<SessionRecord, "userId" | "sessionId">;

/** Maintenance operations for a session folder. */
export interface FilesUpkeep {
  /** Indexes everything. Returns the number of sessions that could not be indexed. */
  bringUpIndex(progress?: Progress): Promise<number>;
  /** Writes a consistent copy to an empty or new folder. */
  backup(folder: string, progress?: Progress, options?: BackupOptions): Promise<BackupDone>;
  /** Checks everything. Changes nothing unless `fix` is set. */
  check(options: { readonly fix: boolean }, progress?: Progress): Promise<readonly CheckFinding[]>;
  /** Returns the reasons why the store should not receive work now. The list is empty if the store is healthy. */
  health(): Promise<readonly HealthProblem[]>;
  /** Throws `unavailable` if the root folder has been moved or deleted. */
  checkInPlace(): void;
  /** Returns losses that have not been reported yet. */
  takeUntoldLosses(): readonly string[];
  /** Returns the users with sessions. `null` is the unnamed user. */
  users(): readonly (string | null)[];
  /** A value that stays the same as long as lists and run states do not change. `null` if the index is outdated. */
  changeMark(): Promise<string | null>;
  /** A value that stays the same as long as sessions and runs do not change. `null` if unknown. */
  workMark(): string | null;
  /** A value that stays the same as long as a session's log does not change. `null` if the session is not open. */
  logMark(session: Pick<SessionRecord, "uid">): string | null;
  /** Returns `null` if there is no such session. */
  files(scope: Scope, sessionId: string): { readonly log: string; readonly working: string } | null;
  /** Returns the paths of sessions' working sets by uid. Deleted sessions are omitted. */
  workingSets(sessions: readonly Pick<SessionRecord, "uid">[]): ReadonlyMap<string, string>;
  /**
   * Reads a session's whole log in chunks. Damage is reported in the tree's diagnostics. Returns `null` if the session
   * is not in this folder.
   */
  readLog(session: SessionOwner, signal?: AbortSignal): Promise<SessionTree> | null;
  /**
   * Loads the tree of the whole log, which stays in memory for a while. Returns `null` if the session is not in this
   * folder.
   */
  loadTree(session: SessionOwner): Promise<SessionTree> | null;
  /** Returns a reader for a session's blobs by hash, or `null` if the session is not in this folder. */
  blobReader(session: SessionOwner): ((sha256: string) => Uint8Array | null) | null;
  /** Whether redacted or purged bytes remain in a database because another process is reading it. */
  isErasePending(): boolean;
  /** Deletes unreferenced blobs that are older than a day. */
  sweepBlobs(): Promise<{ readonly files: number; readonly bytes: number }>;
}

export function listEveryUser({ feed, index, work }: SessionCatalog): EveryUser {
  return {
    usersAfter: async (after, limit) => work.users(after, limit),
    userFigures: async (userIds) => {
      const behind = await feed.catchUp();
      return { figures: userFigures(index, userIds), behind };
    },
    listAllUsers: async (query, agentId) => {
      const limit = sessionLimit(query.limit);
      const place = decodeCursor(query.cursor, query.sort);
      const behind = await feed.catchUp();
      const scope = { userId: everyUser, ...present({ agentId }) } as const;
      return listPage(listSessions(index, scope, query, limit + 1, place), limit, behind, query.sort);
    },
    countAllUsers: async (query, agentId) => {
      await feed.catchUp();
      return countSessions(index, { userId: everyUser, ...present({ agentId }) }, query);
    },
  };
}

export function filesUpkeep(catalog: SessionCatalog, folder: StoreFolder): FilesUpkeep {
  const { feed, index, settings, work } = catalog;
  const health = new StoreHealth(catalog);
  const silent: Progress = () => undefined;
  const sweep = async () => {
    // An unreadable log might refer to any blob.
    if ((await feed.indexAll()) > 0) return { files: 0, bytes: 0 };
    return sweepBlobs(settings.root, settings.disk, index, catalog.now());
  };
  const files: FilesUpkeep["files"] = (scope, sessionId) => {
    const row = work.byId(scope.userId ?? null, sessionId);
    if (row === null || !inScope(scope, row)) return null;
    const { log, working } = catalog.pathsOf(row);
    return { log, working };
  };
  const logOf = ({ userId, sessionId }: SessionOwner) => files(present({ userId }), sessionId)?.log ?? null;
  return {
    bringUpIndex: (progress = silent) => feed.indexAll(progress),
    backup: (target, progress = silent, options = {}) => backupFiles(catalog, target, progress, options),
    sweepBlobs: sweep,
    health: () => health.problems(),
    checkInPlace: () => work.ledger.checkInPlace(),
    takeUntoldLosses: () => work.takeUntoldLosses(),
    isErasePending: () => work.pendingErase() !== null,
    users: () => work.users(),
    changeMark: listMarks(catalog),
    workMark: () => work.ledger.changeMark(),
    logMark: ({ uid }) => catalog.markOf(uid),
    files,
    readLog: (session, signal) => {
      const log = logOf(session);
      return log === null ? null : readSessionFile(log, signal);
    },
    loadTree: ({ userId, sessionId }) => {
      const row = work.byId(userId, sessionId);
      if (row === null) return null;
      return catalog.using(row, async (file) => {
        await file.loadWhole();
        return file.whole;
      });
    },
    blobReader: (session) => {
      const log = logOf(session);
      if (log === null) return null;
      const folder = join(dirname(dirname(log)), "blobs");
      return (sha256) => (/^[0-9a-f]{64}$/.test(sha256) ? readWhole(realDisk, join(folder, sha256)) : null);
    },
    workingSets: (sessions) => {
      const rows = work.byUids(sessions.map(({ uid }) => uid));
      return new Map(rows.map((row) => [row.uid, catalog.pathsOf(row).working]));
    },
    async check({ fix }, progress = silent) {
      const findings: CheckFinding[] = [];
      const found = (finding: CheckFinding) => void findings.push(finding);
      await checkFiles({ catalog, folder, fix, progress, found });
      if (fix) await sweep();
      return findings;
    },
  };
}

/** Combines the change marks of both databases. */
function listMarks({ feed, index, work }: SessionCatalog): FilesUpkeep["changeMark"] {
  const both = () => {
    const [listed, worked] = [index.db.changeMark(), work.ledger.changeMark()];
    return listed === null || worked === null ? null : `${index.opened}.${listed}.${worked}`;
  };
  /**
   * The change mark from a time when no session was marked for indexing. Every writer marks its session first, which
   * changes this value.
   */
  let quiet: string | null = null;
  return async () => {
    feed.service.follow();
    const now = both();
    if (now !== null && now === quiet) return now;
    if (!work.isBehind()) {
      quiet = now;
      return now;
    }
    return (await feed.catchUp()) > 0 ? null : both();
  };
}

/** A reason why a store should not receive work now. */
export interface HealthProblem {
  readonly code:
    | "store_damaged"
    | "store_locked"
    | "folder_moved"
    | "disk_full"
    | "disk_failed"
    | "index_behind";
  /** Describes the problem and the remedy for an operator. It can contain file names. */
  readonly message: string;
}

/** Enough for a few messages. A disk with less free space is considered full. */
const probeBytes = 256 * 1024;
const probeName = ".disk-probe.tmp";
/** Anyone can request the health status, so the disk is probed at most this often. */
const probeEveryMs = 1000;
/** If more sessions than this are missing from the index, lists and searches are of little use. */
const maxSessionsBehind = 500;
const longestCatchUpMs = 2000;

/**
 * Checks whether a store can operate. Cheap checks run every time, but the disk and the index are probed at most once a
 * second.
 */
class StoreHealth {
  readonly #catalog: SessionCatalog;
  #probe: Promise<readonly HealthProblem[]> | null = null;
  #probedAt = Number.NEGATIVE_INFINITY;

  constructor(catalog: SessionCatalog) {
    this.#catalog = catalog;
  }

  async problems(): Promise<readonly HealthProblem[]> {
    const { work, settings } = this.#catalog;
    const { root } = settings;
    if (!work.ledger.isInPlace()) {
      const message = `The folder ${root} was moved or deleted, or its work.db was replaced. Move it back, or restart`;
      return [{ code: "folder_moved", message }];
    }
    const { damage } = work.ledger;
    if (damage !== null) {
      const message = `work.db in ${root} is damaged (${damage}). Stop the gateway and run \`skein doctor --fix\``;
      return [{ code: "store_damaged", message }];
    }
    if (this.#probe === null || performance.now() - this.#probedAt >= probeEveryMs) {
      this.#probedAt = Number.POSITIVE_INFINITY; // Shared until it ends.
      this.#probe = this.#probed().finally(() => {
        this.#probedAt = performance.now();
      });
    }
    const probed = await this.#probe;
    return work.ledger.damage === null ? probed : this.problems();
  }

  async #probed(): Promise<readonly HealthProblem[]> {
    const { work, settings } = this.#catalog;
    const { root } = settings;
    if (work.ledger.isLocked()) {
      const message = `Another process is keeping work.db in ${root} locked. Work resumes once that process releases it`;
      return [{ code: "store_locked", message }];
    }
    return [...(await this.#diskProblems()), ...(await this.#indexProblems())];
  }

  async #diskProblems(): Promise<HealthProblem[]> {
    const { disk, root } = this.#catalog.settings;
    const path = join(root, probeName);
    try {
      const file = disk.open(path);
      try {
        appendWhole(file, new Uint8Array(probeBytes));
        await file.sync();
      } finally {
        file.close();
        disk.unlink(path);
      }
      return [];
    } catch (error) {
      const code = codeOf(error);
      if (code === "ENOSPC" || code === "EDQUOT")
        return [
          { code: "disk_full", message: `The disk that contains ${root} is full. Free up space on it` },
        ];
      const problem = `The disk that contains ${root} cannot be written to: ${(error as Error).message}`;
      return [{ code: "disk_failed", message: problem }];
    }
  }

  async #indexProblems(): Promise<HealthProblem[]> {
    const { feed, settings, work } = this.#catalog;
    const { root } = settings;
    let behind = 0;
    try {
      const catchingUp = feed.lag().then((lag) => {
        behind = lag;
      });
      if (!(await within(longestCatchUpMs, catchingUp))) behind = work.countDirty();
    } catch (error) {
      const message = `The index of ${root} cannot be brought up to date: ${(error as Error).message}`;
      return [{ code: "index_behind", message }];
    }
    if (behind <= maxSessionsBehind) return [];
    const message = `The index is behind for ${behind} sessions in ${basename(root)}. It catches up automatically`;
    return [{ code: "index_behind", message }];
  }
}
