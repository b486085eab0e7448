import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import type { IdSource } from "../../core/ids.ts";
import { createIdSource } from "../../core/ids.ts";
import { ChangeFeed } from "../changes.ts";
import type { Store } from "../contract.ts";
import { scoped } from "../scoped.ts";
import { FileBlobs } from "./blobs.ts";
import { SessionCatalogue } from "./catalogue.ts";
import type { Disk } from "./disk.ts";
import { realDisk } from "./disk.ts";
import { IndexDb } from "./index-db.ts";
import { indexDbName, workDbName } from "./layout.ts";
import type { Recovery } from "./recover.ts";
import { openOrSetAside, rebuildClaims } from "./recover.ts";
import { FileSearch } from "./search.ts";
import { FileSessions } from "./sessions.ts";
import { FileState } from "./state.ts";
import { WorkDb } from "./work-db.ts";

/** Something that a check of the files found. */
export interface CheckFinding {
  readonly area: "databases" | "logs" | "index" | "locks" | "blobs" | "leftovers" | "disk";
  /** `note`: nothing to do. `warning`: nothing is lost, but see to it. `error`: something is lost or refused. */
  readonly severity: "note" | "warning" | "error";
  readonly file: string;
  /** A sentence: what is wrong. */
  readonly what: string;
  /** What to do; where `fixable`, what a fix does. */
  readonly remedy: string;
  readonly fixable: boolean;
  readonly fixed: boolean;
}

export type Progress = (done: number, total: number) => void;

/** What a folder of sessions needs now and then, beside what every store does. */
export interface FilesUpkeep {
  /** Brings the index up, however long it takes. How many sessions could not be. */
  bringUpIndex(progress?: Progress): Promise<number>;
  /** A copy of everything as it is at one moment, into a folder that is empty or not there. */
  backup(folder: string, progress?: Progress): Promise<{ readonly files: number; readonly bytes: number }>;
  /** Looks at everything; changes nothing unless told to fix. */
  check(options: { readonly fix: boolean }, progress?: Progress): Promise<readonly CheckFinding[]>;
  /** Takes away blobs that nothing refers to any more, once they are a day old. */
  sweepBlobs(): Promise<{ readonly files: number; readonly bytes: number }>;
}

/** A store in a folder. */
export interface FilesStore extends Store {
  readonly root: string;
  readonly upkeep: FilesUpkeep;
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
  /** Another disk, for tests. */
  readonly disk?: Disk;
  /** Where the databases are, when not in the root. */
  readonly databases?: string;
}

const defaultLockTimeout = 10_000;
const mostOpen = 256;

/** Sessions as files that a person can read, kept so that nothing acknowledged is lost. */
export async function openFilesStore(options: FilesStoreOptions): Promise<Store> {
  const { root, disk = realDisk, clock = systemClock, databases = root } = options;
  const newId = options.newId ?? createIdSource(clock);
  mkdirSync(databases, { recursive: true, mode: 0o700 });
  const report = options.report ?? (() => undefined);
  const workPath = join(databases, workDbName);
  const indexPath = join(databases, indexDbName);
  const work = openOrSetAside(workPath, (path) => new WorkDb(path), clock.now(), report);
  const index = openOrSetAside(indexPath, (path) => new IndexDb(path), clock.now(), report);
  if (work.isEmpty()) rebuildClaims(root, disk, work, newId, report);
  if (index.isEmpty()) work.markAllDirty();
  const catalogue = new SessionCatalogue(work, index, {
    root,
    disk,
    clock,
    newId,
    durability: options.durability ?? "full",
    mostOpen,
    report,
    lock: {
      disk,
      clock,
      timeoutMs: options.lockTimeoutMs ?? defaultLockTimeout,
      newToken: newId,
      exclusively: (act) => work.exclusively(act),
      sleep: async (ms) => void (await sleep(ms)),
    },
  });
  await catalogue.finishMoves();
  const watch = new ChangeFeed();
  return scoped({
    sessions: new FileSessions(catalogue, watch),
    search: new FileSearch(catalogue),
    state: new FileState(root, disk, work, newId),
    blobs: new FileBlobs(root, disk, newId),
    watch,
    close: () => catalogue.close(),
  });
}
