import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import type { IdSource } from "../../core/ids.ts";
import { createIdSource } from "../../core/ids.ts";
import { defaultNamespace } from "../../core/namespace.ts";
import { ChangeFeed } from "../changes.ts";
import type { Scope, Store } from "../contract.ts";
import { checkScope, scoped } from "../scoped.ts";
import type { StoreWork } from "../work.ts";
import { workOf } from "../work.ts";
import { adoptAll, adoptNamed } from "./adopt-file.ts";
import { FileBlobs } from "./blobs.ts";
import { SessionCatalogue } from "./catalogue.ts";
import type { Disk } from "./disk.ts";
import { realDisk } from "./disk.ts";
import { checkOwner } from "./home-owner.ts";
import { IndexDb } from "./index-db.ts";
import { IndexInPlace } from "./index-in-place.ts";
import { IndexThread } from "./index-thread.ts";
import type { Namespace } from "./layout.ts";
import { homeOf, indexDbName, workDbName } from "./layout.ts";
import { rebuildClaims } from "./rebuild.ts";
import type { Recovery } from "./recover.ts";
import { openOrSetAside } from "./recover.ts";
import { FileSearch } from "./search.ts";
import { FileSessions } from "./sessions.ts";
import { FileState } from "./state.ts";
import type { FilesUpkeep } from "./upkeep.ts";
import { filesUpkeep } from "./upkeep.ts";
import { WorkDb } from "./work-db.ts";
import type { LockSettings } from "./write-lock.ts";

/**
 * A store in a folder.
 *
 * @example
 * ```ts
 * import type { FilesStore } from "skein/store";
 * const check = (store: FilesStore) => store.upkeep.check({ fix: false });
 * ```
 */
export interface FilesStore extends Store {
  readonly root: string;
  readonly upkeep: FilesUpkeep;
  readonly work: StoreWork;
}

export interface FilesStoreOptions {
  /** The folder of everything. Made if it is not there. */
  readonly root: string;
  readonly durability?: "full" | "os";
  readonly lockTimeoutMs?: number;
  readonly clock?: Clock;
  readonly newId?: IdSource;
  /** Told what had to be put right. */
  readonly report?: (found: Recovery) => void;
  /** How much of a long session that was never compacted is read to be ready to append; by default 256 KB. */
  readonly tailBytes?: number;
  /** Another disk, for tests. */
  readonly disk?: Disk;
  /** Where the databases are, when not in the root. */
  readonly databases?: string;
  /** Which folders a user's sessions are in, from the root on; by default `users/<user>`. */
  readonly namespace?: Namespace;
  /** Where the index works: in a thread of its own, or in place, for a process that does one thing and ends. */
  readonly index?: "in a thread" | "in place";
  /** Looks whether the databases are sound before they are used. */
  readonly verify?: boolean;
}

const defaultLockTimeout = 10_000;
const mostOpen = 256;
const defaultTailBytes = 256 * 1024;
/** What the index takes in at once where it works in place. */
const chunkBytes = 256 * 1024;

/** Sessions as files that a person can read, kept so that nothing acknowledged is lost. */
export async function openFilesStore(options: FilesStoreOptions): Promise<FilesStore> {
  const {
    root,
    disk = realDisk,
    clock = systemClock,
    databases = root,
    namespace = defaultNamespace,
  } = options;
  const newId = options.newId ?? createIdSource(clock);
  mkdirSync(databases, { recursive: true, mode: 0o700 });
  const report = options.report ?? (() => undefined);
  const open = <T>(name: string, make: (path: string) => T) =>
    openOrSetAside(join(databases, name), make, clock.now(), report);
  const work = open(workDbName, (path) => new WorkDb(path));
  const index = open(indexDbName, (path) => new IndexDb(path, options.verify));
  const lock: LockSettings = {
    disk,
    clock,
    timeoutMs: options.lockTimeoutMs ?? defaultLockTimeout,
    newToken: newId,
    exclusively: (act) => work.exclusively(act),
    sleep: async (ms) => void (await sleep(ms)),
  };
  const claims = { root, disk, work, namespace, report, newId, lock };
  if (work.isNew()) {
    rebuildClaims(claims);
    await adoptAll(claims);
    work.begin(clock.now());
  }
  work.knowIndex(index.identity, index.isEmpty());
  const inPlace = new IndexInPlace({ work, index, disk, root, chunkBytes, newToken: newId });
  const isThreaded = disk === realDisk && options.index !== "in place";
  const service = isThreaded ? new IndexThread({ root, databases }, inPlace) : inPlace;
  const durability = options.durability ?? "full";
  const { tailBytes = defaultTailBytes } = options;
  const settings = { root, databases, disk, clock, newId, durability, tailBytes, mostOpen, report, lock };
  const catalogue = new SessionCatalogue(work, index, service, settings);
  await catalogue.moves.finish(clock.now());
  await catalogue.finishTodos();
  catalogue.feed.finishErase();
  const watch = new ChangeFeed();
  const homeFor = (userId: string | null) => {
    const home = homeOf(namespace, userId);
    if (namespace !== defaultNamespace) checkOwner(root, home, disk, userId);
    return home;
  };
  const adoptByName = (scope: Scope, sessionId: string) => adoptNamed(claims, scope, sessionId);
  const sessions = new FileSessions(catalogue, watch, homeFor, adoptByName);
  const store = scoped({
    sessions,
    search: new FileSearch(catalogue),
    state: new FileState(root, work, lock),
    blobs: new FileBlobs({ root, disk, clock, homeFor, newToken: newId }),
    watch,
    purgeUser: (userId) => sessions.purgeUser(userId),
    close: () => catalogue.close(),
  });
  const handle: StoreWork = {
    ledger: work.ledger,
    attend: (attendant) => work.attendance.attend(attendant),
    find: (userId, by) => {
      const row = "key" in by ? work.byKey(userId, by.key) : work.thereById(userId, by.sessionId);
      return row === null ? null : workOf(row);
    },
    create: async (scope, init, act) => {
      checkScope(scope);
      return sessions.createWith(scope, init, act);
    },
    watch: (listener) => watch.subscribe("everybody", listener),
  };
  return { ...store, root, upkeep: filesUpkeep(catalogue, claims, databases, homeFor), work: handle };
}
