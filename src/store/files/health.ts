import { basename, join } from "node:path";
import { codeOf } from "../../core/errors.ts";
import { within } from "../../core/within.ts";
import type { Disk } from "./disk.ts";
import { appendWhole } from "./disk-files.ts";
import type { IndexFeed } from "./index-feed.ts";
import type { WorkDb } from "./work-db.ts";

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

export interface HealthParts {
  readonly root: string;
  readonly disk: Disk;
  readonly work: WorkDb;
  readonly feed: IndexFeed;
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
export class StoreHealth {
  readonly #parts: HealthParts;
  #probe: Promise<readonly HealthProblem[]> | null = null;
  #probedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: HealthParts) {
    this.#parts = parts;
  }

  async problems(): Promise<readonly HealthProblem[]> {
    const { work, root } = this.#parts;
    if (!work.isInPlace()) {
      const message = `The folder ${root} was moved or deleted, or its work.db was replaced. Put it back, or restart`;
      return [{ code: "folder_moved", message }];
    }
    const { damage } = work;
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
    return work.damage === null ? probed : this.problems();
  }

  async #probed(): Promise<readonly HealthProblem[]> {
    const { work, root } = this.#parts;
    if (work.isLocked()) {
      const message = `Another process keeps work.db in ${root} locked. It is used again once that process lets go`;
      return [{ code: "store_locked", message }];
    }
    return [...(await this.#diskProblems()), ...(await this.#indexProblems())];
  }

  async #diskProblems(): Promise<HealthProblem[]> {
    const { disk, root } = this.#parts;
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
    const { feed, root, work } = this.#parts;
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
