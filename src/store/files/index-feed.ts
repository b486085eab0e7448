import { setImmediate as nextTurn } from "node:timers/promises";
import { isWriteFailure } from "./disk.ts";
import type { IndexService } from "./index-service.ts";
import type { CaughtUp, UnreadLog } from "./indexer.ts";
import type { AgentPlace } from "./layout.ts";
import { indexDbName } from "./layout.ts";
import type { Recovery } from "./recover.ts";
import type { WorkDb } from "./work-db.ts";

/** How long a list waits for the index to catch up. */
const catchUpMs = 200;
/** How often the index is synced. */
const settleMs = 10_000;
/** If there are more marks than this, a checkpoint is cheaper than the resulting slow lists. */
const manyMarks = 500;
/** How soon a change is indexed when no list requests it. */
const followMs = 1000;
/** Maximum number of attempts without progress. Long sessions are indexed in several attempts. */
const mostFruitless = 1000;

/** Marks changed sessions for indexing, and lets lists wait until they are indexed. */
export class IndexFeed {
  readonly service: IndexService;
  readonly #work: WorkDb;
  readonly #report: (found: Recovery) => void;
  readonly #reported = new Set<string>();
  /** Sessions marked in `work.db` since this process last acquired their locks. */
  readonly #marked = new Set<string>();
  /** Sessions that could not be marked because the disk was full. */
  readonly #unmarked = new Set<string>();
  #settled = performance.now();
  #following: NodeJS.Timeout | null = null;
  #underWay: Promise<unknown> = Promise.resolve();
  #erasing: Promise<void> = Promise.resolve();
  #nextErase: Promise<void> | null = null;
  #retrying: NodeJS.Timeout | null = null;
  /** Folders whose listings might still contain removed sessions. */
  readonly #unlisted: AgentPlace[] = [];
  #isTidyDue = false;
  #isClosed = false;

  constructor(work: WorkDb, service: IndexService, report: (found: Recovery) => void) {
    this.#work = work;
    this.service = service;
    this.#report = report;
  }

  /**
   * Called before a log grows. Marks are removed only while the session is unlocked, so one mark per lock acquisition
   * is enough. The first write after acquiring the lock (`isFirst`) marks the session again.
   */
  mark(uid: string, isFirst: boolean): void {
    if (!isFirst && this.#marked.has(uid)) return;
    this.#work.markDirty(uid);
    this.#marked.add(uid);
    this.#followLater();
  }

  /**
   * Like `mark`, for a reader that finds a longer log. Does not throw, because a reader must not fail on a full disk.
   */
  markIfPossible(uid: string): void {
    try {
      this.mark(uid, true);
    } catch (error) {
      if (!isWriteFailure(error)) throw error;
      this.#unmarked.add(uid);
    }
  }

  /** Indexes for a limited time and returns the number of sessions that are still not up to date. */
  async catchUp(): Promise<number> {
    return (await this.#bringUpForAWhile()).behind;
  }

  /** Like `catchUp`, but does not count unreadable logs, because waiting for them does not help. */
  async lag(): Promise<number> {
    const { behind, unreadable } = await this.#bringUpForAWhile();
    return behind - unreadable;
  }

  async #bringUpForAWhile(): Promise<CaughtUp> {
    this.service.follow();
    for (const uid of this.#unmarked) {
      this.#unmarked.delete(uid);
      this.markIfPossible(uid);
      if (this.#unmarked.has(uid)) break; // The disk is still full.
    }
    if (!this.#work.isBehind()) return { behind: this.#unmarked.size, unreadable: 0, problems: [] };
    try {
      const caught = await this.service.catchUp(catchUpMs);
      for (const each of caught.problems) this.#reportOnce(each);
      this.#tidyLater();
      return caught;
    } catch (error) {
      // Lists and searches use what has been indexed so far, and report how many sessions are not up to date.
      if (!isWriteFailure(error)) throw error;
      return { behind: this.#work.countDirty(), unreadable: 0, problems: [] };
    }
  }

  /** Indexes all marked sessions. Returns the number of sessions that could not be indexed. */
  async indexAll(progress: (done: number, total: number) => void = () => undefined): Promise<number> {
    this.service.follow();
    const total = this.#work.dirty().length;
    for (let left = total, fruitless = 0; ; ) {
      // Each round blocks this thread, so signals and timers must get a chance to run in between.
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
   * Erases removed bytes from the databases and rewrites these listings. Concurrent calls share one pass. If another
   * process is reading a database, the erasure is retried by this process or the next one.
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

  /** Waits for background work. */
  async untilIdle(): Promise<void> {
    await this.#underWay;
  }

  /** Completes an erasure that an earlier process left unfinished. */
  finishErase(): void {
    if (this.#work.pendingErase() !== null) this.#inBackground(() => this.erase());
  }

  async #eraseNow(): Promise<void> {
    const request = this.#work.pendingErase();
    if (request === null) return;
    if (await this.service.scrub(this.#unlisted.splice(0))) {
      this.#work.finishErase(request);
      return;
    }
    const note = "another process is reading a database; removed data will be erased once it stops reading";
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
    // On a full disk, the index remains outdated, and indexing continues at the next start.
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

  /** Updates listings and marks in the background. */
  #tidyLater(): void {
    // A pending pass that has not started yet also covers this call.
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
