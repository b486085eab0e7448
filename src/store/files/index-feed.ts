import { setImmediate as nextTurn } from "node:timers/promises";
import { isWriteFailure } from "./disk.ts";
import type { IndexService } from "./index-service.ts";
import type { CaughtUp, UnreadLog } from "./indexer.ts";
import type { AgentPlace } from "./layout.ts";
import { indexDbName } from "./layout.ts";
import type { Recovery } from "./recover.ts";
import type { WorkDb } from "./work-db.ts";

/** Longest that a list waits for sessions that the index is behind for. */
const catchUpMs = 200;
/** How often the index is brought to the disk. */
const settleMs = 10_000;
/** More marks than this cost every list more than a checkpoint does. */
const manyMarks = 500;
/** How soon after a change the index follows when nobody asks for it. */
const followMs = 1000;
/** A session of any length is taken in by pieces of a catch-up; more than so many in vain are no accident. */
const mostFruitless = 1000;

/** Tells the index what has changed, and waits for it where somebody wants to know. */
export class IndexFeed {
  readonly service: IndexService;
  readonly #work: WorkDb;
  readonly #report: (found: Recovery) => void;
  readonly #reported = new Set<string>();
  /** Marked in `work.db` as possibly behind in the index, since we last took their locks. */
  readonly #marked = new Set<string>();
  /** Could not be marked, because the disk was full. */
  readonly #unmarked = new Set<string>();
  #settled = performance.now();
  #following: NodeJS.Timeout | null = null;
  #underWay: Promise<unknown> = Promise.resolve();
  #erasing: Promise<void> = Promise.resolve();
  #nextErase: Promise<void> | null = null;
  #retrying: NodeJS.Timeout | null = null;
  /** Places whose listings may still name what was removed. */
  readonly #unlisted: AgentPlace[] = [];
  #isTidyDue = false;
  #isClosed = false;

  constructor(work: WorkDb, service: IndexService, report: (found: Recovery) => void) {
    this.#work = work;
    this.service = service;
    this.#report = report;
  }

  /**
   * Before a log grows. Marks are taken away only where nobody has the session's lock, so one mark is enough for as long
   * as we have it; the first write after taking it (`isFirst`) marks again.
   */
  mark(uid: string, isFirst: boolean): void {
    if (!isFirst && this.#marked.has(uid)) return;
    this.#work.markDirty(uid);
    this.#marked.add(uid);
    this.#followLater();
  }

  /** As `mark`, for a reader that finds a log longer than it knew: a reader must not fail because the disk is full. */
  markIfPossible(uid: string): void {
    try {
      this.mark(uid, true);
    } catch (error) {
      if (!isWriteFailure(error)) throw error;
      this.#unmarked.add(uid);
    }
  }

  /** Brings the index up for a while; how many sessions it is then still behind for. */
  async catchUp(): Promise<number> {
    return (await this.#bringUpForAWhile()).behind;
  }

  /** As `catchUp`, without the sessions whose logs cannot be read: waiting does not help those. */
  async lag(): Promise<number> {
    const { behind, unreadable } = await this.#bringUpForAWhile();
    return behind - unreadable;
  }

  async #bringUpForAWhile(): Promise<CaughtUp> {
    this.service.follow();
    for (const uid of this.#unmarked) {
      this.#unmarked.delete(uid);
      this.markIfPossible(uid);
      if (this.#unmarked.has(uid)) break; // the disk is still full
    }
    if (!this.#work.isBehind()) return { behind: this.#unmarked.size, unreadable: 0, problems: [] };
    try {
      const caught = await this.service.catchUp(catchUpMs);
      for (const each of caught.problems) this.#reportOnce(each);
      this.#tidyLater();
      return caught;
    } catch (error) {
      // Lists and searches answer with what the index has, and say how far it is behind.
      if (!isWriteFailure(error)) throw error;
      return { behind: this.#work.countDirty(), unreadable: 0, problems: [] };
    }
  }

  /** Everything that is marked, however long it takes. How many sessions could not be taken in. */
  async bringUpAll(progress: (done: number, total: number) => void = () => undefined): Promise<number> {
    this.service.follow();
    const total = this.#work.dirty().length;
    for (let left = total, fruitless = 0; ; ) {
      // In place, each round keeps everybody waiting: signals and timers have their turn in between.
      await nextTurn();
      const { behind, unreadable, problems } = await this.service.catchUp(catchUpMs);
      progress(total - Math.min(behind, total), total);
      for (const each of problems) this.#reportOnce(each);
      fruitless = behind < left ? 0 : fruitless + 1;
      left = behind;
      if (behind !== unreadable && fruitless < mostFruitless) continue;
      await this.service.settle();
      return behind + problems.length - unreadable;
    }
  }

  /**
   * Leaves no byte of what was removed in the databases, and rewrites these listings. Who asks while another one waits for its
   * turn shares it. Where another process is reading, it is tried again until that has ended, by this process or the next.
   */
  erase(places: readonly AgentPlace[] = []): Promise<void> {
    this.#unlisted.push(...places);
    this.#nextErase ??= this.#erasing.then(async () => {
      this.#nextErase = null;
      await this.#eraseNow();
    });
    this.#erasing = this.#nextErase.catch(() => undefined);
    return this.#nextErase;
  }

  /** Until nothing that was begun in the background is under way. */
  async untilIdle(): Promise<void> {
    await this.#underWay;
  }

  /** What an earlier process could not erase. */
  finishErase(): void {
    if (this.#work.pendingErase() !== null) this.#inBackground(() => this.erase());
  }

  async #eraseNow(): Promise<void> {
    const request = this.#work.pendingErase();
    if (request === null) return;
    if (await this.service.scrub(this.#unlisted.splice(0))) {
      this.#work.erased(request);
      return;
    }
    const note = "another process is reading a database; what was removed is erased once it has ended";
    if (!this.#reported.has("erase")) this.#report({ kind: "not_erased", file: indexDbName, note });
    this.#reported.add("erase");
    if (this.#isClosed || this.#retrying !== null) return;
    this.#retrying = setTimeout(() => {
      this.#retrying = null;
      this.#inBackground(() => this.erase());
    }, followMs).unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#following !== null) clearTimeout(this.#following);
    if (this.#retrying !== null) clearTimeout(this.#retrying);
    await this.#underWay;
    await this.#erasing;
    // On a full disk the index stays behind, and the next start brings it up.
    const finish = () => this.service.finish(catchUpMs);
    if (this.#work.isBehind())
      await finish().catch((error: unknown) => {
        if (!isWriteFailure(error)) throw error;
      });
    await this.service.close();
  }

  #followLater(): void {
    if (this.#following !== null || this.#isClosed) return;
    this.#following = setTimeout(() => {
      this.#following = null;
      this.#inBackground(() => this.catchUp());
    }, followMs).unref();
  }

  /** Listings and marks follow when nobody waits for an answer. */
  #tidyLater(): void {
    // One that has not begun yet does for all lists until then.
    if (this.#isTidyDue) return;
    this.#isTidyDue = true;
    this.#inBackground(async () => {
      this.#isTidyDue = false;
      if (this.#isClosed) return;
      await this.service.writeListings(false);
      const isDue = performance.now() - this.#settled >= settleMs || this.#work.countDirty() > manyMarks;
      if (!isDue) return;
      this.#settled = performance.now();
      await this.service.settle();
    });
  }

  #inBackground(act: () => Promise<unknown>): void {
    this.#underWay = this.#underWay
      .then(act)
      .catch((error: unknown) => this.#reportOnce({ file: indexDbName, problem: String(error) }));
  }

  #reportOnce({ file, problem }: UnreadLog): void {
    if (this.#reported.has(file)) return;
    this.#reported.add(file);
    this.#report({ kind: "not_indexed", file, note: `it cannot be listed or searched: ${problem}` });
  }
}
