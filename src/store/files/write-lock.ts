import { dirname } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import type { Disk } from "./disk.ts";
import { appendWhole, isFileExists, makeFolderDurably, parseJson, readWhole } from "./disk.ts";
import type { ProcessIdentity } from "./process-identity.ts";
import { isGone, thisProcess } from "./process-identity.ts";

/** Identifies a lock's holder so that other processes can determine whether it is alive. */
interface LockHolder extends ProcessIdentity {
  readonly token: string;
  readonly createdAt: number;
}

export interface LockSettings {
  readonly disk: Disk;
  readonly clock: Clock;
  /** How long to wait for the lock. */
  readonly timeoutMs: number;
  newToken(): string;
  /** Runs `act` while excluding all other processes. Used to take over a stale lock. */
  exclusively<T>(act: () => T): T;
  sleep(ms: number): Promise<void>;
}

const shortestWait = 50;
const longestWait = 1000;
/** A waiter's mark is ignored after this many checks because the waiter must have died. */
const mostTurns = 25;
/** A lock from another machine is stale if it has not been touched for this long. */
const foreignStaleMs = 30 * 60 * 1000;
const touchEveryMs = 10_000;
const retryReleaseMs = 1000;
const mostReleases = 600;
/** A placeholder for the holder of an unreadable lock file. */
const unreadable: LockHolder = { pid: 0, started: null, host: "", bootId: null, token: "", createdAt: 0 };

/** A lock on a session file that excludes other processes. Within a process, the owner queues its writes. */
export class WriteLock {
  readonly #path: string;
  readonly #settings: LockSettings;
  #token: string | null = null;
  #yielded = false;
  #hasMarked = false;
  #touching: NodeJS.Timeout | null = null;

  constructor(path: string, settings: LockSettings) {
    this.#path = path;
    this.#settings = settings;
  }

  get isHeld(): boolean {
    return this.#token !== null;
  }

  /**
   * Waits for the lock, at most as long as the settings allow. After the timeout, throws `locked` with the lock's
   * holder.
   */
  async acquire(timeoutMs = this.#settings.timeoutMs): Promise<void> {
    const { sleep } = this.#settings;
    // Uses a monotonic clock because the wall clock can be set back.
    const until = performance.now() + Math.min(timeoutMs, this.#settings.timeoutMs);
    // A waiter that this process yielded to goes first because the waiter polls only occasionally.
    for (let turns = mostTurns; this.#yielded && turns > 0 && this.isWanted(); turns--) {
      await sleep(shortestWait);
    }
    this.#yielded = false;
    for (let wait = shortestWait; !this.#tryAcquire(); wait = Math.min(2 * wait, longestWait)) {
      const left = until - performance.now();
      if (left <= 0) throw this.#giveUp();
      this.#leaveMark();
      await sleep(Math.min(wait, left));
    }
  }

  /** Releases the lock, and lets the waiter go first the next time. */
  yield(): void {
    this.release();
    this.#yielded = true;
  }

  /** Whether another process is waiting for the lock. */
  isWanted(): boolean {
    return this.#settings.disk.stat(this.#markPath) !== null;
  }

  /** Releases the lock, unless another process has taken it over. */
  release(): void {
    if (this.#token === null) return;
    if (this.#touching !== null) clearInterval(this.#touching);
    if (this.#read()?.token === this.#token) this.#settings.disk.unlink(this.#path);
    this.#token = null;
    held.delete(this);
  }

  state(): "free" | "held" | "stale" {
    const holder = this.#read();
    return holder === null ? "free" : this.#isStale(holder) ? "stale" : "held";
  }

  removeIfStale(): boolean {
    const isRemoved = this.state() === "stale" && this.#tryAcquire();
    if (isRemoved) this.release();
    return isRemoved;
  }

  /** Releases the lock, and retries on a disk error. */
  releaseSoon(tries = mostReleases): void {
    try {
      this.release();
    } catch (error) {
      if (tries === 0) throw error;
      setTimeout(() => this.#releaseLater(tries - 1), retryReleaseMs).unref();
    }
  }

  /** Retries later. At the latest, the lock is released when the process exits. */
  #releaseLater(tries: number): void {
    if (this.isHeld && tries > 0) this.releaseSoon(tries);
  }

  #tryAcquire(): boolean {
    if (this.#create()) return true;
    const holder = this.#read();
    if (holder === null || !this.#isStale(holder)) return false; // The lock was just released, or its holder is alive.
    // Two processes that find the lock stale must not both take it, nor take each other's new lock.
    return this.#settings.exclusively(() => {
      const again = this.#read();
      if (again !== null && (again.token !== holder.token || !this.#isStale(again))) return false; // Another process took it first.
      this.#settings.disk.unlink(this.#path);
      return this.#create((act) => act());
    });
  }

  /** Creates the lock and its contents in one step so that no process reads it half-written. */
  #create(alone: LockSettings["exclusively"] = this.#settings.exclusively): boolean {
    const { disk, clock, newToken } = this.#settings;
    const token = newToken();
    const holder: LockHolder = { ...thisProcess(), token, createdAt: clock.now() };
    const temporary = `${this.#path}.${token}`;
    try {
      const file = disk.create(temporary);
      try {
        appendWhole(file, Buffer.from(JSON.stringify(holder)));
      } finally {
        file.close();
      }
      if (!disk.link(temporary, this.#path)) return alone(() => this.#createWithoutLinks(holder));
    } catch (error) {
      if (isFileExists(error)) return false;
      const advice =
        "Nothing was changed. Free up disk space, or check that you have permission to write there";
      throw new SkeinError(
        "write_failed",
        { file: this.#path, problem: (error as Error).message, advice },
        { cause: error },
      );
    } finally {
      // A leftover second link to the lock is harmless.
      quietly(() => disk.unlink(temporary));
    }
    return this.#hold(token);
  }

  /** The file is empty for a moment. No takeover can happen in that time, because takeovers are also exclusive. */
  #createWithoutLinks(holder: LockHolder): boolean {
    try {
      const file = this.#settings.disk.create(this.#path);
      appendWhole(file, Buffer.from(JSON.stringify(holder)));
      file.close();
      return this.#hold(holder.token);
    } catch (error) {
      if (isFileExists(error)) return false;
      throw error;
    }
  }

  #hold(token: string): boolean {
    this.#token = token;
    quietly(() => this.#settings.disk.unlink(this.#markPath));
    this.#touching = setInterval(() => this.#touch(), touchEveryMs).unref();
    held.add(this);
    return true;
  }

  /**
   * Signals to other machines that this process is alive. If a disk error prevents this, the next attempt is soon
   * enough.
   */
  #touch(): void {
    const { disk, clock } = this.#settings;
    quietly(() => this.#read()?.token === this.#token && disk.touch(this.#path, clock.now()));
  }

  #leaveMark(): void {
    this.#settings.disk.open(this.#markPath).close();
    this.#hasMarked = true;
  }

  get #markPath(): string {
    return `${this.#path}.wait`;
  }

  /** Returns `null` if there is no lock. */
  #read(): LockHolder | null {
    const bytes = readWhole(this.#settings.disk, this.#path);
    if (bytes === null) return null;
    const holder = parseJson(bytes);
    return isHolder(holder) ? holder : unreadable;
  }

  #isStale(holder: LockHolder): boolean {
    const me = thisProcess();
    // A lock file is never half-written, so an empty one must be left over from a power failure.
    if (holder === unreadable) return true;
    return holder.host === me.host ? isGone(holder) : this.#age() > foreignStaleMs;
  }

  #age(): number {
    return this.#settings.clock.now() - (this.#settings.disk.stat(this.#path)?.modifiedAt ?? 0);
  }

  /** Removes this process's mark so that other processes no longer yield to it. */
  #giveUp(): SkeinError {
    if (this.#hasMarked) this.#settings.disk.unlink(this.#markPath);
    this.#hasMarked = false;
    return this.#locked();
  }

  #locked(): SkeinError {
    const holder = this.#read();
    const who =
      holder === null || holder === unreadable
        ? "an unknown process"
        : `process ${holder.pid} on ${holder.host}, since ${new Date(holder.createdAt).toISOString()}`;
    return new SkeinError("locked", { file: this.#path, holder: who });
  }
}

/** Runs `act` under a lock. Creates the lock's folder if needed. */
export async function underLock<T>(
  path: string,
  settings: LockSettings,
  act: () => Promise<T>,
  timeoutMs?: number,
): Promise<T> {
  await makeFolderDurably(settings.disk, dirname(path));
  const lock = new WriteLock(path, settings);
  await lock.acquire(timeoutMs);
  try {
    return await act();
  } finally {
    lock.releaseSoon();
  }
}

export function lockState(path: string, settings: LockSettings): "free" | "held" | "stale" {
  return new WriteLock(path, settings).state();
}

/** Removes a stale lock. Returns `false` if the lock is held. */
export function removeIfStale(path: string, settings: LockSettings): boolean {
  return new WriteLock(path, settings).removeIfStale();
}

/** This process's locks, which are released when it exits. */
const held = new Set<WriteLock>();
process.on("exit", () => {
  // If a release fails, other processes take over the dead process's lock.
  for (const lock of held) quietly(() => lock.release());
});

/** Returns `false` if `act` failed. The error is ignored. */
function quietly(act: () => unknown): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}

function isHolder(value: unknown): value is LockHolder {
  return (
    isRecord(value) &&
    typeof value.pid === "number" &&
    typeof value.host === "string" &&
    typeof value.token === "string" &&
    typeof value.createdAt === "number"
  );
}

/** A burst of appends keeps the lock across gaps of up to this length. */
const burstMs = 20;
/** How often to check for waiters. */
const wantedCheckMs = 5;

/** Keeps a write lock for a burst of appends, and releases it as soon as other processes are waiting. */
export class BurstLock {
  readonly #lock: WriteLock;
  readonly #report: (problem: string) => void;
  #users = 0;
  #timer: NodeJS.Timeout | null = null;
  #idleSince = 0;
  #lookedAt = 0;

  constructor(lock: WriteLock, report: (problem: string) => void) {
    this.#lock = lock;
    this.#report = report;
  }

  get isHeld(): boolean {
    return this.#lock.isHeld;
  }

  /** Whether a write is in progress, in which case no other process is writing. */
  get isInUse(): boolean {
    return this.#users > 0;
  }

  /**
   * Joins the current burst. Returns `false` if there is none or the caller must wait. If it returns `true`, call
   * `letGo` once.
   */
  join(mustWait: boolean): boolean {
    if (mustWait || !this.#lock.isHeld) return false;
    this.#users += 1;
    return true;
  }

  /** Acquires the lock. `prepare` runs if the lock was not already held, because other processes might have written. */
  async hold(prepare: () => Promise<void>, timeoutMs?: number): Promise<void> {
    this.#users += 1;
    if (this.#lock.isHeld) return;
    try {
      await this.#lock.acquire(timeoutMs);
      await prepare();
    } catch (error) {
      this.letGo();
      throw error;
    }
  }

  /** Call this once per successful `hold`. */
  letGo(): void {
    this.#users -= 1;
    if (this.#users > 0 || !this.#lock.isHeld) return;
    const now = performance.now();
    this.#idleSince = now;
    // The timer alone is not enough, because a caller that awaits only promises from this lock never lets timers run.
    if (now - this.#lookedAt >= wantedCheckMs) this.#releaseIfDue(now);
    if (this.#lock.isHeld) this.#timer ??= setTimeout(() => this.#onTimer(), wantedCheckMs);
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#lock.release();
  }

  /** Handles the burst's only timer. */
  #onTimer(): void {
    this.#timer = null;
    if (this.#users > 0 || !this.#lock.isHeld) return;
    const wait = this.#releaseIfDue(performance.now()) ? wantedCheckMs : retryReleaseMs;
    if (!this.#lock.isHeld) return;
    this.#timer = setTimeout(() => this.#onTimer(), wait);
    if (wait === retryReleaseMs) this.#timer.unref();
  }

  /** Returns `false` on a disk error. */
  #releaseIfDue(now: number): boolean {
    this.#lookedAt = now;
    try {
      if (this.#lock.isWanted()) this.#lock.yield();
      else if (now - this.#idleSince >= burstMs) this.#lock.release();
      return true;
    } catch (error) {
      this.#report(`the lock could not be removed: ${(error as Error).message}`);
      return false;
    }
  }
}
