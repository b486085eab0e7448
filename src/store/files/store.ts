import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { createIdSource } from "../../core/ids.ts";
import { defaultNamespace } from "../../core/namespace.ts";
import { valueScript } from "../../core/script.ts";
import { spaceOf } from "../../core/space.ts";
import { ChangeFeed } from "../change-feed.ts";
import type { Scope } from "../contract.ts";
import { isOfExternalStore } from "../external-changes.ts";
import { unfinishedError, unfinishedFact } from "../migrate/ledger-tables.ts";
import { checkScope, withScopeChecks } from "../rules.ts";
import { SqliteEngine } from "../sqlite-engine.ts";
import type { LocalWork, WorkingStore } from "../work.ts";
import { adoptAll, adoptBySessionId } from "./adopt-file.ts";
import { FileBlobs } from "./blobs.ts";
import type { Disk } from "./disk.ts";
import { diskInPlace, openFileLimit, reclaimingDisk } from "./disk.ts";
import { eraseRemoved } from "./erase.ts";
import { IndexDb } from "./index-db.ts";
import { IndexInPlace } from "./index-service.ts";
import { IndexThread } from "./index-thread.ts";
import type { Namespace } from "./layout.ts";
import { checkOwner, homeOf, indexDbName, workDbName } from "./layout.ts";
import type { StoreFolder } from "./rebuild.ts";
import { rebuildClaims } from "./rebuild.ts";
import type { Recovery } from "./recover.ts";
import {
  describeRebuild,
  describeSalvage,
  openIndex,
  openWork,
  readWorkCounts,
  workCountsName,
} from "./recover.ts";
import type { SalvageRules } from "./salvage.ts";
import { finishSalvage, salvageDatabase } from "./salvage.ts";
import { FileSearch } from "./search.ts";
import { SessionCatalog } from "./session-catalog.ts";
import { SessionMover } from "./session-files.ts";
import { FileSessions } from "./sessions.ts";
import { FileState } from "./state.ts";
import type { FilesUpkeep } from "./upkeep.ts";
import { filesUpkeep, listEveryUser } from "./upkeep.ts";
import { WorkDb } from "./work-db.ts";
import type { LockSettings } from "./write-lock.ts";

/** A store in a folder. */
export interface FilesStore extends WorkingStore<LocalWork> {
  readonly root: string;
  readonly upkeep: FilesUpkeep;
}

export interface FilesStoreOptions {
  /** The root folder. It is created if it does not exist. */
  readonly root: string;
  readonly durability?: "full" | "os";
  readonly lockTimeoutMs?: number;
  readonly clock?: Clock;
  readonly newId?: IdSource;
  /** Called for every repair. */
  readonly report?: (found: Recovery) => void;
  /** How much of a long session without a compaction is read before appending. Defaults to 256 KB. */
  readonly tailBytes?: number;
  /** Replaces the real disk in tests. */
  readonly disk?: Disk;
  /** The folder for the databases, if it is not the root. */
  readonly databases?: string;
  /** Chooses a user's folders, relative to the root. Defaults to `users/<user>`. */
  readonly namespace?: Namespace;
  /** Whether the index runs in a worker thread, or on the calling thread for a short-lived process. */
  readonly index?: "in a thread" | "in place";
  /** Checks the databases before use. */
  readonly verify?: boolean;
  /** Salvages a damaged `work.db`. If absent, opening a damaged `work.db` fails. */
  readonly salvage?: SalvageRules;
  /** The default working directory of a user's agent, for adopted session files. */
  readonly cwdFor?: StoreFolder["cwdFor"];
}

const defaultLockTimeout = 10_000;
const mostOpen = 256;
/** Descriptors reserved for databases, threads and the port. */
const ownDescriptors = 48;
/**
 * A session has one or two files open. A third of the descriptors is reserved for sessions, and the rest for
 * connections.
 */
const descriptorsPerSession = 6;
const defaultTailBytes = 256 * 1024;
/** Bytes indexed per transaction when the index runs without a worker thread. */
const chunkBytes = 256 * 1024;

/** `how` describes what happened to the existing database. */
function openWorkDb(
  { salvage }: FilesStoreOptions,
  databases: string,
  now: number,
  report: (found: Recovery) => void,
): { work: WorkDb; how: "as it was" | "salvaged" | "unreadable" } {
  const path = join(databases, workDbName);
  finishSalvage(path);
  const salvaged = salvage === undefined ? null : salvageDatabase(path, now, salvage);
  let how: "as it was" | "salvaged" | "unreadable" = salvaged === null ? "as it was" : "salvaged";
  const reporting = (found: Recovery) => {
    how = "unreadable";
    report(found);
  };
  const work = openWork(path, (each) => new WorkDb(each), now, reporting, salvage !== undefined);
  if (salvaged !== null) noteLoss(work, describeSalvage(salvaged), now, report, "salvaged");
  return { work, how };
}

/** Reports the loss immediately, and records it for the next start and `doctor`. */
function noteLoss(
  work: WorkDb,
  note: string,
  at: number,
  report: (found: Recovery) => void,
  kind: "rebuilt" | "salvaged" = "rebuilt",
): void {
  work.recordLoss({ at, note, isTold: false });
  report({ kind, file: work.path, note });
}

/** Opens a store that keeps sessions in readable files. Acknowledged data survives crashes. */
export async function openFilesStore(options: FilesStoreOptions): Promise<FilesStore> {
  const { root, clock = systemClock, databases = root, report = () => undefined } = options;
  mkdirSync(databases, { recursive: true, mode: 0o700 });
  const now = clock.now();
  const { work, how } = openWorkDb(options, databases, now, report);
  let close = async () => work.close();
  try {
    refuseForeignFolder(work, root);
    const openedIndex = (path: string) => new IndexDb(path, () => work.ledger.checkInPlace(), options.verify);
    const index = openIndex(join(databases, indexDbName), openedIndex, now, report);
    close = async () => {
      work.close();
      index.close();
    };
    let closeIdle = () => 0;
    const disk = reclaimingDisk(options.disk ?? diskInPlace(work.ledger), () => closeIdle());
    const folder = storeFolder(options, work, disk);
    await recoverClaims(folder, databases, how, now);
    if (work.registerIndex(index.identity, index.isEmpty()) && work.isBehind()) {
      const note = "it will be rebuilt from the session logs; nothing is lost";
      report({ kind: "rebuilt", file: join(databases, indexDbName), note });
    }
    const catalog = openCatalog(options, folder, index);
    close = () => catalog.close();
    closeIdle = () => catalog.closeIdle();
    await catalog.mover.finish(clock.now());
    await catalog.finishTodos();
    catalog.feed.finishErase();
    return storeOn(catalog, folder);
  } catch (error) {
    await close();
    throw error;
  }
}

/** Throws if the folder belongs to an unfinished migration or to another kind of store. */
function refuseForeignFolder({ ledger }: WorkDb, root: string): void {
  if (ledger.sql("SELECT 1 FROM facts WHERE name = ?").get(unfinishedFact) !== undefined)
    throw unfinishedError();
  if (isOfExternalStore(ledger))
    throw new SkeinError("conflict", {
      problem: `The folder ${root} contains the runs of an external store`,
      advice: "Open it with the program that uses that store, or choose a different folder",
    });
}

function storeFolder(
  { root, clock = systemClock, ...options }: FilesStoreOptions,
  work: WorkDb,
  disk: Disk,
): StoreFolder {
  const newId = options.newId ?? createIdSource(clock);
  const lock: LockSettings = {
    disk,
    clock,
    timeoutMs: options.lockTimeoutMs ?? defaultLockTimeout,
    newToken: newId,
    exclusively: (act) => work.exclusively(act),
    sleep: async (ms) => void (await sleep(ms)),
  };
  const { namespace = defaultNamespace, report = () => undefined, cwdFor = () => "" } = options;
  return { root, disk, work, namespace, report, newId, lock, cwdFor };
}

/** Uses the session files to restore the claims that `work.db` has lost. */
async function recoverClaims(
  folder: StoreFolder,
  databases: string,
  how: "as it was" | "salvaged" | "unreadable",
  now: number,
): Promise<void> {
  const { work, disk, lock, report } = folder;
  if (!work.isNew()) {
    if (how === "salvaged") rebuildClaims(folder);
    return;
  }
  const sessions = rebuildClaims(folder);
  const counts = readWorkCounts(disk, join(databases, workCountsName));
  // An interrupted first start might have left adoptions unfinished.
  await new SessionMover(work, folder).finish(now);
  await adoptAll(folder);
  // A salvage has already recorded its losses. The lost rows might include the one that marks the database as used.
  const isLost = how === "unreadable" || sessions > 0 || counts !== null;
  if (isLost && how !== "salvaged")
    noteLoss(work, describeRebuild(how === "unreadable" ? how : "missing", sessions, counts), now, report);
  work.begin(lock.clock.now());
}

function openCatalog(options: FilesStoreOptions, folder: StoreFolder, index: IndexDb): SessionCatalog {
  const { root, disk, work, newId, report, lock } = folder;
  const { databases = root, durability = "full", tailBytes = defaultTailBytes } = options;
  const inPlace = new IndexInPlace({ work, index, disk, root, chunkBytes, newToken: newId });
  const isThreaded = options.disk === undefined && options.index !== "in place";
  const places = { root, databases, identity: work.ledger.identity };
  const service = isThreaded ? new IndexThread(places, inPlace) : inPlace;
  const { clock } = lock;
  const settings = { root, databases, disk, clock, newId, durability, tailBytes, report, lock };
  return new SessionCatalog(work, index, service, { ...settings, mostOpen: maxOpenSessions() });
}

function storeOn(catalog: SessionCatalog, folder: StoreFolder): FilesStore {
  const { root, disk, work, namespace, lock } = folder;
  const watch = new ChangeFeed();
  const homeFor = (userId: string | null) => {
    const home = homeOf(namespace, userId);
    const isChosen = namespace !== defaultNamespace || spaceOf(userId).namespace !== null;
    if (isChosen) checkOwner(root, home, disk, userId);
    return home;
  };
  const adoptByName = (scope: Scope, sessionId: string) => adoptBySessionId(folder, scope, sessionId);
  const sessions = new FileSessions(catalog, watch, homeFor, adoptByName);
  const store = withScopeChecks({
    sessions,
    search: new FileSearch(catalog),
    state: new FileState(root, work, lock),
    blobs: new FileBlobs(catalog.settings, homeFor),
    watch,
    purgeUser: (userId) => sessions.purgeUser(userId),
    close: () => catalog.close(),
  });
  const handle: LocalWork = {
    engine: new SqliteEngine(work.ledger),
    ledger: work.ledger,
    shared: null,
    attend: (attendant) => {
      work.attendance.attendant = attendant;
    },
    find: (userId, by) => valueScript(work.findRef(userId, by)),
    locate: work.locate,
    create: async (scope, init, act) => {
      checkScope(scope);
      return sessions.createWith(scope, init, act);
    },
    watch: (listener) => watch.subscribe("all users", listener),
    users: async () => work.users(),
    everyUser: listEveryUser(catalog),
    erase: () => eraseRemoved(work),
    settle: async () => undefined,
  };
  return { ...store, root, upkeep: filesUpkeep(catalog, folder), work: handle };
}

function maxOpenSessions(): number {
  const spare = Math.floor((openFileLimit() - ownDescriptors) / descriptorsPerSession);
  return Math.min(mostOpen, Math.max(4, spare));
}
