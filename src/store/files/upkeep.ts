import { present } from "../../core/present.ts";
import { inScope } from "../changes.ts";
import type { Scope, SessionPage, SessionQuery, SessionRecord } from "../contract.ts";
import { sessionLimit } from "../limits.ts";
import { decodeCursor, listPage } from "../listing.ts";
import type { BackupDone, BackupOptions } from "./backup.ts";
import { backupFiles } from "./backup.ts";
import { sweepBlobs } from "./blobs.ts";
import type { SessionCatalogue } from "./catalogue.ts";
import type { CheckFinding, Progress } from "./check.ts";
import { checkFiles } from "./check.ts";
import type { HealthProblem } from "./health.ts";
import { StoreHealth } from "./health.ts";
import type { UserFigures } from "./index-query.ts";
import { everyUser, listSessions, userFigures } from "./index-query.ts";
import type { RebuildParts } from "./rebuild.ts";

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

export function filesUpkeep(
  catalogue: SessionCatalogue,
  claims: RebuildParts,
  databases: string,
): FilesUpkeep {
  const { feed, index, settings, work } = catalogue;
  const { root, disk } = settings;
  const health = new StoreHealth({ root, disk, work, feed });
  const silent: Progress = () => undefined;
  const sweep = async () => {
    // A log that cannot be read may refer to anything.
    if ((await feed.bringUpAll()) > 0) return { files: 0, bytes: 0 };
    return sweepBlobs(settings.root, settings.disk, index, catalogue.now());
  };
  return {
    bringUpIndex: (progress = silent) => feed.bringUpAll(progress),
    backup: (folder, progress = silent, options = {}) =>
      backupFiles(catalogue, databases, folder, progress, options),
    sweepBlobs: sweep,
    health: () => health.problems(),
    checkInPlace: () => work.checkInPlace(),
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
    changeMark: listMarks(catalogue),
    workMark: () => work.changeMark(),
    logMark: ({ uid }) => catalogue.markOf(uid),
    files: (scope, sessionId) => {
      const row = work.byId(scope.userId ?? null, sessionId);
      if (row === null || !inScope(scope, row)) return null;
      const { log, working } = catalogue.pathsOf(row);
      return { log, working };
    },
    workingSets: (sessions) => {
      const places = work.placesOf(sessions.map(({ uid }) => uid));
      return new Map(places.map((place) => [place.uid, catalogue.pathsOf(place).working]));
    },
    async check({ fix }, progress = silent) {
      const findings: CheckFinding[] = [];
      const found = (finding: CheckFinding) => void findings.push(finding);
      await checkFiles({ catalogue, claims, databases, fix, progress, found });
      if (fix) await sweep();
      return findings;
    },
  };
}

/** What of two databases every list is made of. */
function listMarks({ feed, index, work }: SessionCatalogue): FilesUpkeep["changeMark"] {
  const both = () => {
    const [listed, worked] = [index.db.changeMark(), work.changeMark()];
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
