import fs from "node:fs";
import { open } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { timedOften } from "./side.ts";

/** How often an operation waits for the disk, and for how long. */

export interface Syncs {
  /** The number of file syncs: logs and their folders. */
  files: number;
  /** The number of database syncs: synced commits. */
  commits: number;
  /** The total duration in milliseconds. */
  waitedMs: number;
}

/** Counts the syncs made by `work` in this thread. */
export async function watchSyncs(work: () => Promise<unknown>): Promise<Syncs> {
  const counts = { files: 0, commits: 0, waitedMs: 0 };
  const restore = [countFiles(counts), countCommits(counts)];
  try {
    await work();
  } finally {
    for (const each of restore) each();
  }
  return counts;
}

function countFiles(counts: Syncs): () => void {
  const { fdatasync, fsync } = fs;
  const counted =
    (sync: typeof fsync) =>
    (...[handle, done]: Parameters<typeof fsync>) => {
      const started = performance.now();
      sync(handle, (error) => {
        counts.files += 1;
        counts.waitedMs += performance.now() - started;
        done(error);
      });
    };
  Object.assign(fs, { fdatasync: counted(fdatasync), fsync: counted(fsync) });
  syncBuiltinESMExports();
  return () => {
    Object.assign(fs, { fdatasync, fsync });
    syncBuiltinESMExports();
  };
}

/** A commit that changed data while the database is configured to sync, which is the default. */
function countCommits(counts: Syncs): () => void {
  const { exec } = DatabaseSync.prototype;
  const relaxed = new WeakSet<DatabaseSync>();
  const changedAt = new WeakMap<DatabaseSync, number>();
  const changesOf = (db: DatabaseSync) => Number(db.prepare("SELECT total_changes() AS n").get()?.n);
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
    if (sql === "PRAGMA synchronous = NORMAL") relaxed.add(this);
    if (sql === "PRAGMA synchronous = FULL") relaxed.delete(this);
    if (sql === "BEGIN IMMEDIATE") changedAt.set(this, changesOf(this));
    const isSynced = sql === "COMMIT" && !relaxed.has(this) && changesOf(this) > (changedAt.get(this) ?? 0);
    const started = performance.now();
    exec.call(this, sql);
    if (!isSynced) return;
    counts.commits += 1;
    counts.waitedMs += performance.now() - started;
  };
  return () => {
    DatabaseSync.prototype.exec = exec;
  };
}

/** Returns how long it takes to sync a short line at the end of a file, in milliseconds. */
export async function syncTime(folder: string, times: number): Promise<number> {
  const file = await open(join(folder, "sync-probe"), "a");
  const line = Buffer.alloc(400, "x");
  try {
    return await timedOften(times, async () => {
      await file.write(line);
      await file.datasync();
    });
  } finally {
    await file.close();
  }
}
