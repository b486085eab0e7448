import { basename, join } from "node:path";
import { codeOf } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { within } from "../../core/within.ts";
import type { Scope, SessionPage, SessionQuery, SessionRecord } from "../contract.ts";
import { decodeCursor, listPage, sessionLimit } from "../list-query.ts";
import { inScope } from "../rules.ts";
import type { BackupDone, BackupOptions } from "./backup.ts";
import { backupFiles } from "./backup.ts";
import { sweepBlobs } from "./blobs.ts";
import type { CheckFinding, Progress } from "./check.ts";
import { checkFiles } from "./check.ts";
import { appendWhole } from "./disk.ts";
import type { UserFigures } from "./index-lists.ts";
import { everyUser, listSessions, userFigures } from "./index-lists.ts";
import type { StoreFolder } from "./rebuild.ts";
import type { SessionCatalog } from "./session-catalog.ts";

/** What a folder of sessions needs now and then, beside what every store does. */
export interface FilesUpkeep {
  /** Brings the index up, however long it takes. How many sessions could not be. */
  bringUpIndex(progress?: Progress): Promise<number>;
  /** A copy of everything as it is at one moment, into a folder that is empty or not there. */
  backup(folder: string, progress?: Progress, options?: BackupOptions): Promise<BackupDone>;
  /** Looks at everything; changes nothing unless told to fix. */
  check(options: { readonly fix: boolean }, progress?: Progress): Promise<readonly CheckFinding[]>;
  /** Why the store should not be given work now; empty: it should. */
  health(): Promise<readonly HealthProblem[]>;
  /** Throws `unavailable` once the root folder was moved or deleted. */
  checkInPlace(): void;
  /** Notes about databases that were lost or rebuilt, which nobody has taken yet. */
  takeUntoldLosses(): readonly string[];
  /** Whose sessions are here; `null` is the unnamed user. */
  users(): readonly (string | null)[];
  /** The same in pages, in the order of their bytes. `after` `undefined`: from the first. */
  usersAfter(after: string | null | undefined, limit: number): readonly (string | null)[];
  /** What the sessions of these users come to; users without any are left out. */
  userFigures(
    userIds: readonly (string | null)[],
  ): Promise<{ readonly figures: readonly UserFigures[]; readonly behind: number }>;
  /** As `sessions.list`, of every user. A reach does not apply. */
  listAllUsers(query: SessionQuery, agentId?: string): Promise<SessionPage>;
  /**
   * A text that stays the same for as long as lists, and what they say of runs, do. `null`: the index is behind, and every
   * list may show more.
   */
  changeMark(): Promise<string | null>;
  /** The same text for as long as nobody changes which sessions there are, or what runs do; `null`: it is not known. */
  workMark(): string | null;
  /** The same text for as long as nobody changes what was said in a session; `null`: it has not been read lately. */
  logMark(session: Pick<SessionRecord, "uid">): string | null;
  /** Where a session's files are; `null`: there is no such session. */
  files(scope: Scope, sessionId: string): { readonly log: string; readonly working: string } | null;
  /** The working sets of a page of sessions, by uid; one that was removed for good a moment ago has none. */
  workingSets(sessions: readonly Pick<SessionRecord, "uid">[]): ReadonlyMap<string, string>;
  /** Whether bytes of what was redacted or purged are still in a database, because another process is reading it. */
  isErasePending(): boolean;
  /** Takes away blobs that nothing refers to any more, once they are a day old. */
  sweepBlobs(): Promise<{ readonly files: number; readonly bytes: number }>;
}

export function filesUpkeep(catalog: SessionCatalog, folder: StoreFolder): FilesUpkeep {
  const { feed, index, settings, work } = catalog;
  const health = new StoreHealth(catalog);
  const silent: Progress = () => undefined;
  const sweep = async () => {
    // A log that cannot be read may refer to anything.
    if ((await feed.bringUpAll()) > 0) return { files: 0, bytes: 0 };
    return sweepBlobs(settings.root, settings.disk, index, catalog.now());
  };
  return {
    bringUpIndex: (progress = silent) => feed.bringUpAll(progress),
    backup: (target, progress = silent, options = {}) => backupFiles(catalog, target, progress, options),
    sweepBlobs: sweep,
    health: () => health.problems(),
    checkInPlace: () => work.ledger.checkInPlace(),
    takeUntoldLosses: () => work.takeUntoldLosses(),
    isErasePending: () => work.pendingErase() !== null,
    users: () => work.users(),
    usersAfter: (after, limit) => work.users(after, limit),
    userFigures: async (userIds) => {
      const behind = await feed.catchUp();
      return { figures: userFigures(index, userIds), behind };
    },
    listAllUsers: async (query, agentId) => {
      const limit = sessionLimit(query.limit);
      const place = decodeCursor(query.cursor);
      const behind = await feed.catchUp();
      const scope = { userId: everyUser, ...present({ agentId }) } as const;
      return listPage(listSessions(index, scope, query, limit + 1, place), limit, behind);
    },
    changeMark: listMarks(catalog),
    workMark: () => work.ledger.changeMark(),
    logMark: ({ uid }) => catalog.markOf(uid),
    files: (scope, sessionId) => {
      const row = work.byId(scope.userId ?? null, sessionId);
      if (row === null || !inScope(scope, row)) return null;
      const { log, working } = catalog.pathsOf(row);
      return { log, working };
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

/** What of two databases every list is made of. */
function listMarks({ feed, index, work }: SessionCatalog): FilesUpkeep["changeMark"] {
  const both = () => {
    const [listed, worked] = [index.db.changeMark(), work.ledger.changeMark()];
    return listed === null || worked === null ? null : `${index.opened}.${listed}.${worked}`;
  };
  /** As it was when no session was marked: whoever writes to one then marks it first, and so moves it. */
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

/** A reason why a store should not be given work now. */
export interface HealthProblem {
  readonly code:
    | "store_damaged"
    | "store_locked"
    | "folder_moved"
    | "disk_full"
    | "disk_failed"
    | "index_behind";
  /** What is wrong and what to do about it, for an operator: it may name files. */
  readonly message: string;
}

/** Room for a few messages. A disk that does not take this much is full for every practical purpose. */
const probeBytes = 256 * 1024;
const probeName = ".disk-probe.tmp";
/** Anybody may ask for the health, so that the disk is tried no more often than this. */
const probeEveryMs = 1000;
/** Lists and searches that miss more sessions than this are of little use. */
const maxSessionsBehind = 500;
const longestCatchUpMs = 2000;

/** Whether a store can do its work. What is cheap is looked at each time; the disk and the index at most once a second. */
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
      const message = `The folder ${root} was moved or deleted, or its work.db was replaced. Put it back, or restart`;
      return [{ code: "folder_moved", message }];
    }
    const { damage } = work.ledger;
    if (damage !== null) {
      const message = `work.db in ${root} is damaged (${damage}). Stop the gateway and run \`skein doctor --fix\``;
      return [{ code: "store_damaged", message }];
    }
    if (this.#probe === null || performance.now() - this.#probedAt >= probeEveryMs) {
      this.#probedAt = Number.POSITIVE_INFINITY; // shared until it has ended
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
      const message = `Another process keeps work.db in ${root} locked. It is used again once that process lets go`;
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
        return [{ code: "disk_full", message: `The disk of ${root} is full. Make room on it` }];
      const problem = `The disk of ${root} cannot be written: ${(error as Error).message}`;
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
    const message = `The index is behind for ${behind} sessions in ${basename(root)}. It catches up by itself`;
    return [{ code: "index_behind", message }];
  }
}
