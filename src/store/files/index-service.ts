import { join } from "node:path";
import type { SkeinError } from "../../core/errors.ts";
import type { ListedSession } from "../contract.ts";
import type { PackedVector } from "../search/vectors.ts";
import { replaceWhole } from "./disk.ts";
import type { EmbeddedRow, EmbeddingSearch } from "./index-embeddings.ts";
import { findNearest, findUnembedded, putEmbeddings } from "./index-embeddings.ts";
import type { FoundEntries, FoundEntry, WordSearch } from "./index-search.ts";
import { searchWords } from "./index-search.ts";
import type { CatchUpLimits, CaughtUp, IndexFiles } from "./indexer.ts";
import { Indexer } from "./indexer.ts";
import type { AgentPlace } from "./layout.ts";
import { sessionPaths, sessionsFolder } from "./layout.ts";

/**
 * Index operations that can take a long time. They run in a worker thread so that SQLite does not block callers. In a
 * short-lived process, they run on the calling thread.
 */
export interface IndexService {
  /** Reopens an index that has been deleted or replaced, and marks all sessions. Called before marks are read. */
  follow(): void;
  /** Indexes marked sessions for at most `forMs`. */
  catchUp(forMs: number): Promise<CaughtUp>;
  /** Indexes one session without a time limit. `bytesBehind` is the size of the unindexed part of its log. */
  bringUp(uid: string, bytesBehind: number): Promise<void>;
  search(search: WordSearch): Promise<FoundEntries>;
  /** Returns the entries whose embeddings are nearest to a vector. */
  nearest(search: EmbeddingSearch, vector: PackedVector): Promise<readonly FoundEntry[]>;
  unembedded(search: EmbeddingSearch): Promise<readonly FoundEntry[]>;
  embed(search: EmbeddingSearch, rows: readonly EmbeddedRow[]): Promise<void>;
  /** Returns the sessions that have one of these entry IDs. Scans all entries. */
  withEntries(entryIds: readonly string[]): Promise<readonly string[]>;
  remove(uid: string): Promise<void>;
  /**
   * Rewrites these listings and both databases so that no removed bytes remain. Returns `false` if another process is
   * reading one of them.
   */
  scrub(places: readonly AgentPlace[]): Promise<boolean>;
  /** Syncs the index and removes the marks of sessions that are up to date. */
  settle(): Promise<void>;
  /** Schedules these listings to be written. */
  touchListings(places: readonly AgentPlace[]): Promise<void>;
  /** Writes the `sessions.json` files that are due. With `all`, writes every file that has changed. */
  writeListings(all: boolean): Promise<void>;
  /** Indexes marked sessions for at most `forMs`, then syncs everything. Called before closing. */
  finish(forMs: number): Promise<void>;
  close(): Promise<void>;
}

/** The methods that can be called across threads. */
export const serviceCalls = [
  "catchUp",
  "bringUp",
  "search",
  "nearest",
  "unembedded",
  "embed",
  "withEntries",
  "remove",
  "scrub",
  "settle",
  "touchListings",
  "writeListings",
  "finish",
  "close",
] as const satisfies readonly (keyof IndexService)[];

export type ServiceCall = (typeof serviceCalls)[number];

interface ServiceFiles extends IndexFiles {
  newToken(): string;
}

/** Number of marks removed per transaction. */
const atOnce = 200;

/** The index service on the calling thread. */
export class IndexInPlace implements IndexService {
  readonly #files: ServiceFiles;
  readonly #indexer: Indexer;
  readonly #listings: Listings;

  constructor(files: ServiceFiles) {
    this.#files = files;
    this.#indexer = new Indexer(files);
    this.#listings = new Listings(files);
  }

  /** Why nothing can be indexed any more, or `null` while the folder is in its place. */
  absence(): SkeinError | null {
    try {
      this.#files.work.ledger.checkInPlace();
      return null;
    } catch (error) {
      return error as SkeinError;
    }
  }

  follow(): void {
    const { work, index } = this.#files;
    work.ledger.checkInPlace(); // Do not recreate an index whose folder no longer exists.
    if (index.followName()) work.registerIndex(index.identity, index.isEmpty());
  }

  async catchUp(forMs: number, limits?: CatchUpLimits): Promise<CaughtUp> {
    this.follow();
    const onSession = (row: AgentPlace | null) => {
      if (row !== null) this.#listings.touch(row);
    };
    return this.#indexer.catchUp(performance.now() + forMs, onSession, limits);
  }

  async bringUp(uid: string): Promise<void> {
    this.follow();
    this.#indexer.bringUp(uid);
  }

  async search(search: WordSearch): Promise<FoundEntries> {
    this.follow();
    return searchWords(this.#files.index, search);
  }

  async nearest(search: EmbeddingSearch, vector: PackedVector): Promise<readonly FoundEntry[]> {
    this.follow();
    return findNearest(this.#files.index, search, vector);
  }

  async unembedded(search: EmbeddingSearch): Promise<readonly FoundEntry[]> {
    this.follow();
    return findUnembedded(this.#files.index, search);
  }

  async embed(search: EmbeddingSearch, rows: readonly EmbeddedRow[]): Promise<void> {
    this.follow();
    putEmbeddings(this.#files.index, search, rows);
  }

  async withEntries(entryIds: readonly string[]): Promise<readonly string[]> {
    this.follow();
    return this.#files.index.withEntries(entryIds);
  }

  async remove(uid: string): Promise<void> {
    this.follow();
    this.#files.index.remove(uid);
  }

  async scrub(places: readonly AgentPlace[]): Promise<boolean> {
    this.follow();
    const { work, index } = this.#files;
    for (const place of places) this.#listings.touch(place);
    await this.#listings.write(true);
    return work.ledger.scrub() && index.scrub();
  }

  /**
   * Removes the marks of sessions whose index data is on disk. A writer marks a session under its lock before the log
   * grows, so marks are removed only while a session is unlocked.
   */
  async settle(): Promise<void> {
    this.follow();
    const { work, index } = this.#files;
    if (!work.isBehind() || !index.checkpoint()) return;
    const settled = work.dirty().filter((uid) => this.#indexer.isUpToDate(uid));
    for (let from = 0; from < settled.length; from += atOnce) {
      work.clearDirty(settled.slice(from, from + atOnce), (uid) => this.#isSettled(uid));
    }
  }

  #isSettled(uid: string): boolean {
    const { work, disk, root } = this.#files;
    const row = work.byUid(uid);
    const isWritten = row !== null && disk.stat(sessionPaths(root, row, row.sessionId).lock) !== null;
    return !isWritten && this.#indexer.isUpToDate(uid);
  }

  async touchListings(places: readonly AgentPlace[]): Promise<void> {
    for (const place of places) this.#listings.touch(place);
  }

  countIn({ home, agentId }: AgentPlace): number {
    return this.#files.index.countIn(home, agentId);
  }

  /** Passes the changed listings to another writer. */
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
    // The caller owns the databases.
  }
}

export const listingName = "sessions.json";
const shortestPauseMs = 1000;
/** The longer a listing takes to write, the less often it is written. */
const pauseFactor = 50;

/** Writes `sessions.json` in each agent's folder, for people and for programs that do not use the index. */
class Listings {
  readonly #files: ServiceFiles;
  readonly #touched = new Map<string, AgentPlace>();
  readonly #notBefore = new Map<string, number>();

  constructor(files: ServiceFiles) {
    this.#files = files;
  }

  touch({ home, agentId }: AgentPlace): void {
    this.#touched.set(JSON.stringify([home, agentId]), { home, agentId });
  }

  takeTouched(): AgentPlace[] {
    const places = [...this.#touched.values()];
    this.#touched.clear();
    return places;
  }

  /** Writes the changed listings that are due. With `all`, writes every changed listing. */
  async write(all: boolean): Promise<void> {
    for (const [name, place] of [...this.#touched]) {
      const started = performance.now();
      if (!all && started < (this.#notBefore.get(name) ?? 0)) continue;
      this.#touched.delete(name);
      await this.#writeOne(place);
      const now = performance.now();
      this.#notBefore.set(name, now + Math.max(shortestPauseMs, pauseFactor * (now - started)));
    }
  }

  async #writeOne(place: AgentPlace): Promise<void> {
    const { index, disk, root, newToken } = this.#files;
    const folder = sessionsFolder(root, place);
    if (!disk.isFolder(folder)) return;
    const rows = index.recordsIn(place.home, place.agentId);
    const lines = rows.map((row) => `  ${JSON.stringify(row.key)}: ${JSON.stringify(listingRow(row))}`);
    const text = lines.length === 0 ? "{}\n" : `{\n${lines.join(",\n")}\n}\n`;
    const path = join(folder, listingName);
    await replaceWhole(disk, path, Buffer.from(text), newToken()).catch((error: unknown) => {
      // A folder that has since been purged needs no listing.
      if (disk.isFolder(folder)) throw error;
    });
  }
}

/** Selects the fields of a listing that are useful to people. */
function listingRow({ sessionId, name, updatedAt, createdAt, meta, digest }: ListedSession): object {
  const { summary, model, entries, totalTokens } = digest;
  return {
    sessionId,
    summary: name ?? summary ?? "",
    updatedAt,
    createdAt,
    ...meta,
    ...(model === null ? {} : { model: `${model.provider}/${model.modelId}` }),
    entries,
    totalTokens,
  };
}
