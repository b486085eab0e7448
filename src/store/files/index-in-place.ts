import type { Disk } from "./disk.ts";
import type { IndexDb } from "./index-db.ts";
import type { FoundEntries, WordSearch } from "./index-query.ts";
import { searchWords } from "./index-query.ts";
import type { IndexService } from "./index-service.ts";
import type { CatchUpLimits, CaughtUp } from "./indexer.ts";
import { Indexer } from "./indexer.ts";
import type { AgentPlace } from "./layout.ts";
import { sessionPaths } from "./layout.ts";
import { Listings } from "./listings.ts";
import type { WorkDb } from "./work-db.ts";

export interface InPlaceParts {
  readonly work: WorkDb;
  readonly index: IndexDb;
  readonly disk: Disk;
  readonly root: string;
  /** How much of a log is taken in at once. */
  readonly chunkBytes: number;
  newToken(): string;
}

/** So many marks are taken away while others wait. */
const atOnce = 200;

/** The index service in this thread. */
export class IndexInPlace implements IndexService {
  readonly #parts: InPlaceParts;
  readonly #indexer: Indexer;
  readonly #listings: Listings;

  constructor(parts: InPlaceParts) {
    const { work, index, disk, root } = parts;
    this.#parts = parts;
    this.#indexer = new Indexer(work, index, disk, root, parts.chunkBytes);
    this.#listings = new Listings(index, disk, root, parts.newToken);
  }

  follow(): void {
    const { work, index } = this.#parts;
    work.checkInPlace(); // an index that is gone with its folder is not created again
    if (index.followName()) work.knowIndex(index.identity, index.isEmpty());
  }

  async catchUp(forMs: number, limits?: CatchUpLimits): Promise<CaughtUp> {
    this.follow();
    const taken = (row: AgentPlace | null) => {
      if (row !== null) this.#listings.touch(row);
    };
    return this.#indexer.catchUp(performance.now() + forMs, taken, limits);
  }

  async bringUp(uid: string): Promise<void> {
    this.follow();
    this.#indexer.bringUp(uid);
  }

  async search(search: WordSearch): Promise<FoundEntries> {
    this.follow();
    return searchWords(this.#parts.index, search);
  }

  async withEntries(entryIds: readonly string[]): Promise<readonly string[]> {
    this.follow();
    return this.#parts.index.withEntries(entryIds);
  }

  async remove(uid: string): Promise<void> {
    this.follow();
    this.#parts.index.remove(uid);
  }

  async scrub(places: readonly AgentPlace[]): Promise<boolean> {
    this.follow();
    const { work, index } = this.#parts;
    for (const place of places) this.#listings.touch(place);
    await this.#listings.write(true);
    return work.scrub() && index.scrub();
  }

  /**
   * A session with its lock held may be about to grow: whoever takes the lock marks it first, so a mark is taken away
   * only where nobody has it.
   */
  async settle(): Promise<void> {
    this.follow();
    const { work, index } = this.#parts;
    if (!work.isBehind() || !index.checkpoint()) return;
    const settled = work.dirty().filter((uid) => this.#indexer.isUpToDate(uid));
    for (let from = 0; from < settled.length; from += atOnce) {
      work.clearDirty(settled.slice(from, from + atOnce), (uid) => this.#isSettled(uid));
    }
  }

  #isSettled(uid: string): boolean {
    const { work, disk, root } = this.#parts;
    const row = work.byUid(uid);
    const isWritten = row !== null && disk.stat(sessionPaths(root, row, row.sessionId).lock) !== null;
    return !isWritten && this.#indexer.isUpToDate(uid);
  }

  async touchListings(places: readonly AgentPlace[]): Promise<void> {
    for (const place of places) this.#listings.touch(place);
  }

  countIn({ home, agentId }: AgentPlace): number {
    return this.#parts.index.countIn(home, agentId);
  }

  /** Gives up the listings that have changed, for somebody else to write. */
  takeTouched(): readonly AgentPlace[] {
    return this.#listings.takeTouched();
  }

  async writeListings(all: boolean): Promise<void> {
    await this.#listings.write(all);
  }

  async finish(forMs: number): Promise<void> {
    await this.catchUp(forMs);
    await this.writeListings(true);
    await this.settle();
  }

  async close(): Promise<void> {
    // What it works with belongs to whoever made it.
  }
}
