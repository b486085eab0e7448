import type { FoundEntries, WordSearch } from "./index-query.ts";
import type { CaughtUp } from "./indexer.ts";
import type { AgentPlace } from "./layout.ts";

/**
 * What is asked of the index that may take long: done in a worker thread, where SQLite blocks nobody, or in place for
 * a short-lived process.
 */
export interface IndexService {
  /** Before the marks are looked at: an index that was deleted or replaced is opened anew, and everything marked. */
  follow(): void;
  /** Takes in what is marked, for so long at the most. */
  catchUp(forMs: number): Promise<CaughtUp>;
  /** One session, however long it takes; so many bytes of its log are not known yet. */
  bringUp(uid: string, bytesBehind: number): Promise<void>;
  search(search: WordSearch): Promise<FoundEntries>;
  /** The sessions that have an entry of one of these ids. Every entry there is is looked at. */
  withEntries(entryIds: readonly string[]): Promise<readonly string[]>;
  remove(uid: string): Promise<void>;
  /**
   * Rewrites these listings and both databases, so that no byte of what was removed is left in them. `false`: another process
   * was reading one of them.
   */
  scrub(places: readonly AgentPlace[]): Promise<boolean>;
  /** Once the index is on the disk, takes away the marks of sessions that it is up with. */
  settle(): Promise<void>;
  /** These folders' listings have to be written anew. */
  touchListings(places: readonly AgentPlace[]): Promise<void>;
  /** Writes what is due of the `sessions.json` files; with `all`, whatever is not written yet. */
  writeListings(all: boolean): Promise<void>;
  /** Before closing: what is marked is taken in, for so long at the most, and everything brought to the disk. */
  finish(forMs: number): Promise<void>;
  close(): Promise<void>;
}

/** The names of the service's methods, for those who pass calls on. */
export const serviceCalls = [
  "catchUp",
  "bringUp",
  "search",
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
