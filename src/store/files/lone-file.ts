import { mkdirSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../core/clock.ts";
import { createIdSource } from "../../core/ids.ts";
import { Database } from "./database.ts";
import { realDisk } from "./disk.ts";
import type { RepairReport } from "./repair.ts";
import { repairFile } from "./repair.ts";
import { WriteLock } from "./write-lock.ts";

const lockTimeoutMs = 10_000;

/** Repairs one session file, under its lock. */
export async function repairSessionFile(path: string): Promise<RepairReport> {
  const newToken = createIdSource();
  const settings = { disk: realDisk, clock: systemClock, newToken };
  return underLoneLock(resolve(path), () => repairFile(path, settings));
}

/**
 * Does something with the lock of a file that belongs to no store. A stale lock is taken over inside a transaction of a
 * database that all processes of this user share.
 */
export async function underLoneLock<T>(path: string, act: () => Promise<T>): Promise<T> {
  const folder = join(tmpdir(), `skein-${userInfo().uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const database = new Database(join(folder, "locks.db"), "PRAGMA journal_mode = WAL;", []);
  const lock = new WriteLock(`${path}.lock`, {
    disk: realDisk,
    clock: systemClock,
    timeoutMs: lockTimeoutMs,
    newToken: createIdSource(),
    exclusively: (work) => database.exclusively(work),
    sleep: async (ms) => void (await sleep(ms)),
  });
  try {
    await lock.acquire();
    return await act();
  } finally {
    lock.release();
    database.close();
  }
}
