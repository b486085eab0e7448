import type { WriteLock } from "./write-lock.ts";

/** A burst of appends keeps the lock over gaps as long as this. */
const burstMs = 20;
/** How soon a waiter is noticed. */
const wantedCheckMs = 5;
const retryReleaseMs = 1000;

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
