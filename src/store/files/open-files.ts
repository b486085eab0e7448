import type { SessionFile } from "./session-file.ts";

interface Held {
  readonly opening: Promise<SessionFile>;
  file: SessionFile | null;
  users: number;
}

/** Of logs that are in memory whole, all together; short ones do not count. */
const mostBytes = 256 * 1024 * 1024;
const smallBytes = 1024 * 1024;

/** Sessions that are open, no more than so many, but for those in use. Each is open once. */
export class OpenFiles {
  readonly #most: number;
  /** In the order of use, the oldest first. */
  readonly #held = new Map<string, Held>();
  readonly #closing = new Map<string, Promise<void>>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Opens a session, or takes the open one, and keeps it open until the work with it is done. */
  async using<T>(
    uid: string,
    open: () => Promise<SessionFile>,
    work: (file: SessionFile) => T | Promise<T>,
  ): Promise<T> {
    for (let closing = this.#closing.get(uid); closing !== undefined; closing = this.#closing.get(uid))
      await closing;
    const held = this.#held.get(uid) ?? { opening: open(), file: null, users: 0 };
    this.#held.delete(uid);
    this.#held.set(uid, held);
    held.users += 1;
    try {
      held.file ??= await held.opening;
      return await work(held.file);
    } catch (error) {
      if (await isFailed(held.opening)) this.#forget(uid, held);
      throw error;
    } finally {
      held.users -= 1;
      if (this.#held.size > this.#most) this.#closeOldest();
      if ((held.file?.heldBytes ?? 0) > smallBytes) this.#makeRoom();
    }
  }

  /** Whether we have the lock of a session's files. */
  isLocked(uid: string): boolean {
    return this.#held.get(uid)?.file?.isLocked === true;
  }

  /** An open session, which is looked at and counts as used; `null`: it is not open. */
  known(uid: string): SessionFile | null {
    const held = this.#held.get(uid);
    if (held === undefined || held.file === null) return null;
    this.#held.delete(uid);
    this.#held.set(uid, held);
    return held.file;
  }

  /** Lets go of a session that has gone elsewhere; those who still have it are told so by it. */
  drop(uid: string): void {
    const held = this.#held.get(uid);
    if (held !== undefined) this.#close(uid, held);
  }

  /** Closes every session that is not in use, at once, and returns how many. */
  closeIdle(): number {
    let count = 0;
    for (const [uid, held] of [...this.#held]) {
      // To give back a lock takes a descriptor, which there may not be.
      if (held.users > 0 || held.file === null || held.file.isLocked) continue;
      this.#close(uid, held, held.file.close());
      count += 1;
    }
    return count;
  }

  async closeAll(): Promise<void> {
    for (const [uid, held] of [...this.#held]) this.#close(uid, held);
    await Promise.allSettled(this.#closing.values());
  }

  /** Long logs that were read whole are in memory no longer than there is room for them; the one that was used last stays. */
  #makeRoom(): void {
    let left = mostBytes;
    for (const [uid, held] of [...this.#held].reverse()) {
      const bytes = held.file?.heldBytes ?? 0;
      if (bytes <= smallBytes) continue;
      const isFirst = left === mostBytes;
      left -= bytes;
      if (left < 0 && !isFirst && held.users === 0) this.#close(uid, held);
    }
  }

  #closeOldest(): void {
    for (const [uid, held] of this.#held) {
      if (held.users > 0) continue;
      this.#close(uid, held);
      return;
    }
  }

  #close(uid: string, held: Held, closed = held.opening.then((file) => file.close())): void {
    this.#forget(uid, held);
    const closing = closed
      // It never opened, or the disk did not let go of its lock: there is nobody to tell, and nothing is lost.
      .catch(() => undefined)
      .finally(() => {
        if (this.#closing.get(uid) === closing) this.#closing.delete(uid);
      });
    this.#closing.set(uid, closing);
  }

  #forget(uid: string, held: Held): void {
    if (this.#held.get(uid) === held) this.#held.delete(uid);
  }
}

function isFailed(opening: Promise<unknown>): Promise<boolean> {
  return opening.then(
    () => false,
    () => true,
  );
}
