import type { Clock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/shape.ts";
import type { Disk } from "./disk.ts";
import { appendWhole, isThere, readWhole } from "./disk.ts";
import type { ProcessIdentity } from "./process-identity.ts";
import { isGone, thisProcess } from "./process-identity.ts";

/** Who holds a lock: enough to tell, from another process, whether it is still alive. */
interface LockHolder extends ProcessIdentity {
  readonly token: string;
  readonly createdAt: number;
}

export interface LockSettings {
  readonly disk: Disk;
  readonly clock: Clock;
  /** How long to wait for another holder. */
  readonly timeoutMs: number;
  newToken(): string;
  /** Runs alone among all processes; a stale lock is taken over inside. */
  exclusively<T>(act: () => T): T;
  sleep(ms: number): Promise<void>;
}

const shortestWait = 50;
const longestWait = 1000;
/** A mark that nobody has come back for in so many looks was left by somebody who died. */
const mostTurns = 25;
/** Another machine's lock that nobody has touched for so long is stale. */
const foreignStaleMs = 30 * 60 * 1000;
const touchEveryMs = 10_000;
const retryReleaseMs = 1000;
const mostReleases = 600;
/** Stands for a lock file that says nothing. */
const unreadable: LockHolder = { pid: 0, started: null, host: "", bootId: null, token: "", createdAt: 0 };

/** The lock of one session file, between processes. Within a process its owner queues. */
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

  /** Waits for the lock; `locked`, with who has it, when that takes too long. */
  async acquire(timeoutMs = this.#settings.timeoutMs): Promise<void> {
    const { sleep } = this.#settings;
    // Not by the clock, which somebody may set back.
    const until = performance.now() + timeoutMs;
    // Whoever we made room for comes first: it only looks now and then.
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

  /** Gives it back to whoever waits, and lets them have it first the next time. */
  yield(): void {
    this.release();
    this.#yielded = true;
  }

  /** Whether somebody waits for it. */
  isWanted(): boolean {
    return this.#settings.disk.stat(this.#markPath) !== null;
  }

  /** Gives it back; a lock that is no longer ours is left alone. */
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

  /** Gives it back; where the disk does not let us now, a little later. */
  releaseSoon(tries = mostReleases): void {
    try {
      this.release();
    } catch (error) {
      if (tries === 0) throw error;
      setTimeout(() => this.#releaseLater(tries - 1), retryReleaseMs).unref();
    }
  }

  /** At the exit of the process at the latest. */
  #releaseLater(tries: number): void {
    if (this.isHeld && tries > 0) this.releaseSoon(tries);
  }

  #tryAcquire(): boolean {
    if (this.#create()) return true;
    const holder = this.#read();
    if (holder === null || !this.#isStale(holder)) return false; // gone just now, or alive
    // Two that find it stale must not both take it, and one must not take what the other has just made.
    return this.#settings.exclusively(() => {
      const again = this.#read();
      if (again !== null && (again.token !== holder.token || !this.#isStale(again))) return false; // somebody was quicker
      this.#settings.disk.unlink(this.#path);
      return this.#create((act) => act());
    });
  }

  /** The lock appears with its contents in one step, so that nobody ever reads half of it. */
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
      if (isThere(error)) return false;
      const advice = "Nothing was changed; make room on the disk, or check that you may write there";
      throw new SkeinError(
        "write_failed",
        { file: this.#path, problem: (error as Error).message, advice },
        { cause: error },
      );
    } finally {
      // A second name of the lock that stays is in nobody's way.
      quietly(() => disk.unlink(temporary));
    }
    return this.#hold(token);
  }

  /** Here the file is empty for a moment; nobody takes over a lock meanwhile, because that is done alone too. */
  #createWithoutLinks(holder: LockHolder): boolean {
    try {
      const file = this.#settings.disk.create(this.#path);
      appendWhole(file, Buffer.from(JSON.stringify(holder)));
      file.close();
      return this.#hold(holder.token);
    } catch (error) {
      if (isThere(error)) return false;
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

  /** So that other machines see that we live. `false`: the disk did not let us; the next time is soon enough. */
  #touch(): boolean {
    try {
      const isOurs = this.#read()?.token === this.#token;
      if (isOurs) this.#settings.disk.touch(this.#path, this.#settings.clock.now());
      return isOurs;
    } catch {
      return false;
    }
  }

  #leaveMark(): void {
    this.#settings.disk.open(this.#markPath).close();
    this.#hasMarked = true;
  }

  get #markPath(): string {
    return `${this.#path}.wait`;
  }

  /** `null` when there is none. */
  #read(): LockHolder | null {
    const bytes = readWhole(this.#settings.disk, this.#path);
    if (bytes === null) return null;
    try {
      const holder: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
      return isHolder(holder) ? holder : unreadable;
    } catch {
      return unreadable;
    }
  }

  #isStale(holder: LockHolder): boolean {
    const me = thisProcess();
    // It appears whole or not at all: an empty one is what a power cut left of it.
    if (holder === unreadable) return true;
    if (holder.host !== me.host) {
      return this.#age() > foreignStaleMs;
    }
    return isGone(holder);
  }

  #age(): number {
    return this.#settings.clock.now() - (this.#settings.disk.stat(this.#path)?.modifiedAt ?? 0);
  }

  /** Nobody is to make room for us any more. */
  #giveUp(): SkeinError {
    if (this.#hasMarked) this.#settings.disk.unlink(this.#markPath);
    this.#hasMarked = false;
    return this.#locked();
  }

  #locked(): SkeinError {
    const holder = this.#read();
    const who =
      holder === null || holder === unreadable
        ? "somebody"
        : `process ${holder.pid} on ${holder.host}, since ${new Date(holder.createdAt).toISOString()}`;
    return new SkeinError("locked", { file: this.#path, holder: who });
  }
}

/** Whether a lock is there, and whether its holder is. */
export function lockState(path: string, settings: LockSettings): "free" | "held" | "stale" {
  return new WriteLock(path, settings).state();
}

/** Takes away a lock whose holder is gone. `false`: somebody has it. */
export function removeIfStale(path: string, settings: LockSettings): boolean {
  return new WriteLock(path, settings).removeIfStale();
}

/** Locks that this process holds are gone when it exits. */
const held = new Set<WriteLock>();
process.on("exit", () => {
  for (const lock of held) isReleased(lock);
});

/** Tries something that may just as well not be done. */
function quietly(act: () => unknown): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}

/** `false`: its disk does not let us; others take over the lock of a dead process anyway. */
function isReleased(lock: WriteLock): boolean {
  return quietly(() => lock.release());
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

/** A burst of appends keeps the lock over gaps as long as this. */
const burstMs = 20;
/** How soon a waiter is noticed. */
const wantedCheckMs = 5;

/** Holds a write lock for as long as somebody here needs it, and a little longer; lets go at once when others wait. */
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

  /** Whether somebody here is using it: then nobody else writes. */
  get isInUse(): boolean {
    return this.#users > 0;
  }

  /** Takes part in a burst that is under way. `false`: there is none, or one has to wait. One `letGo` if `true`. */
  join(mustWait: boolean): boolean {
    if (mustWait || !this.#lock.isHeld) return false;
    this.#users += 1;
    return true;
  }

  /** Takes the lock; `prepare` runs when it was not held before, and others may have written meanwhile. */
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

  /** One `letGo` for each `hold` that succeeded. */
  letGo(): void {
    this.#users -= 1;
    if (this.#users > 0 || !this.#lock.isHeld) return;
    const now = performance.now();
    this.#idleSince = now;
    // Not by the timer alone: a caller that only ever awaits us leaves timers no turn.
    if (now - this.#lookedAt >= wantedCheckMs) this.#releaseIfDue(now);
    if (this.#lock.isHeld) this.#timer ??= setTimeout(() => this.#onTimer(), wantedCheckMs);
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#lock.release();
  }

  /** One timer serves a whole burst. */
  #onTimer(): void {
    this.#timer = null;
    if (this.#users > 0 || !this.#lock.isHeld) return;
    const wait = this.#releaseIfDue(performance.now()) ? wantedCheckMs : retryReleaseMs;
    if (!this.#lock.isHeld) return;
    this.#timer = setTimeout(() => this.#onTimer(), wait);
    if (wait === retryReleaseMs) this.#timer.unref();
  }

  /** `false`: the disk did not let us. */
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
