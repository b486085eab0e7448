import { SkeinError } from "../../core/errors.ts";
import type { Disk, DiskFile, DiskStat } from "./disk.ts";
import { appendWhole } from "./disk.ts";

/** An append that has been passed to the kernel but might not be on disk yet. */
export interface LogMark {
  readonly start: number;
  /**
   * The end of the log after the append. If it is larger than expected, another process has also written to the log.
   */
  readonly end: number;
  readonly bytes: number;
  readonly epoch: number;
}

const lineBreak = 0x0a;

/** A session's append-only log. Appends happen under the session's lock. Concurrent appends share syncs. */
export class LogFile {
  readonly #path: string;
  readonly #disk: Disk;
  readonly #sync: GroupSync;
  readonly #report: (problem: string) => void;
  #file: DiskFile;
  #identity: string;
  /** The end of this process's last append, which ends with a newline. */
  #ownEnd = -1;
  /** The start of the first append that has not been synced. */
  #unsynced: number | null = null;
  /** Incremented when unsynced appends are rolled back. They are lost even if a later sync succeeds. */
  #epoch = 0;
  /** `true` if a sync has failed. The data it covered is lost even if the next sync succeeds. */
  #isPoisoned = false;

  constructor(path: string, disk: Disk, file: DiskFile, report: (problem: string) => void) {
    this.#path = path;
    this.#disk = disk;
    this.#file = file;
    this.#identity = file.stat().identity;
    this.#report = report;
    this.#sync = new GroupSync(() => this.#syncOnce());
  }

  get size(): number {
    return this.#file.size();
  }

  stat(): DiskStat {
    return this.#file.stat();
  }

  get identity(): string {
    return this.#identity;
  }

  read(offset: number, length: number): Uint8Array {
    return this.#file.read(offset, length);
  }

  readInto(buffer: Uint8Array, offset: number): Uint8Array {
    return this.#file.readInto(buffer, offset);
  }

  /**
   * Appends lines at `start`, the known end of the log. If the write fails, the log is truncated to its previous size
   * if possible.
   */
  append(start: number, lines: readonly string[]): LogMark {
    const torn = this.#ownEnd !== start && start > 0 && this.#file.read(start - 1, 1)[0] !== lineBreak;
    const bytes = Buffer.from(`${torn ? "\n" : ""}${lines.join("\n")}\n`);
    try {
      appendWhole(this.#file, bytes);
    } catch (error) {
      const advice = this.#cutBack(start, start + bytes.length)
        ? "Nothing was written. Free up disk space, then try again"
        : retryAdvice;
      throw failed(this.#path, (error as Error).message, advice, error);
    }
    this.#unsynced ??= start;
    const end = this.#file.size();
    this.#ownEnd = end === start + bytes.length ? end : -1;
    return { start, end, bytes: bytes.length, epoch: this.#epoch };
  }

  /** Resolves once an append is on disk. Rejects if the sync failed or the append was rolled back. */
  async waitForSync(mark: LogMark): Promise<void> {
    try {
      await this.#sync.wait();
    } catch (error) {
      throw failed(this.#path, `the disk did not store it (${(error as Error).message})`, retryAdvice, error);
    }
    if (this.#isPoisoned || mark.epoch !== this.#epoch) {
      throw failed(this.#path, "the disk did not store an earlier append", retryAdvice);
    }
    this.markStored(mark);
  }

  /** Records everything up to this append as stored. */
  markStored(mark: LogMark): void {
    if (this.#unsynced !== null && this.#unsynced < mark.end)
      this.#unsynced = mark.end === this.#ownEnd ? null : mark.end;
  }

  /**
   * After a failed sync, the state of the disk is unknown, so unacknowledged appends are rolled back unless another
   * process has written after them. Returns `false` if no sync failed. Must not run concurrently with other calls, and
   * must run before the next append.
   */
  rollBack(): boolean {
    if (!this.#isPoisoned) return false;
    this.#isPoisoned = false;
    this.#epoch += 1;
    if (this.#unsynced !== null && this.#ownEnd !== -1) this.#cutBack(this.#unsynced, this.#ownEnd);
    this.#unsynced = null;
    this.#ownEnd = -1;
    const old = this.#file;
    this.#file = this.#disk.open(this.#path);
    this.#identity = this.#file.stat().identity;
    // A pending sync must not reach another file that reuses the descriptor.
    void this.#sync.idle().then(() => old.close());
    return true;
  }

  /** Reopens a file that another process has replaced. Returns `true` if it is a different file. */
  followName(): boolean {
    const named = this.#disk.stat(this.#path);
    if (named === null) throw new FileClosed();
    return this.follow(named);
  }

  follow({ identity }: DiskStat): boolean {
    if (identity === this.#identity) return false;
    const old = this.#file;
    this.#file = this.#disk.open(this.#path);
    // The other process has synced the old content, but a sync by this process might still be pending.
    this.#unsynced = null;
    void this.#sync.idle().then(() => old.close());
    this.#identity = this.#file.stat().identity;
    this.#ownEnd = -1;
    return true;
  }

  close(): void {
    this.#file.close();
  }

  async #syncOnce(): Promise<void> {
    const file = this.#file;
    try {
      await file.sync();
    } catch (error) {
      // If the file was replaced, its unsynced appends have already been rolled back.
      if (file === this.#file) this.#isPoisoned = true;
      throw error;
    }
  }

  /** Returns `false` if the bytes remain because other bytes follow them or the disk rejects the truncation. */
  #cutBack(start: number, end: number): boolean {
    try {
      const size = this.#file.size();
      if (size > end) return false;
      if (size > start) this.#file.truncate(start);
      return true;
    } catch (error) {
      this.#report(`a failed write could not be rolled back: ${(error as Error).message}`);
      return false;
    }
  }
}

/** Thrown after the files have been moved. The caller looks up the session again. */
export class FileClosed extends Error {
  override readonly name = "FileClosed";
  override readonly message = "the session has been moved or deleted";
}

const retryAdvice = "Try again with the same ID";

export function failed(file: string, problem: string, advice: string, cause?: unknown): SkeinError {
  return new SkeinError("write_failed", { file, problem, advice }, { cause });
}

/**
 * Lets callers share syncs. Callers that arrive during a sync share the next one, which covers everything written
 * before they called.
 */
class GroupSync {
  readonly #sync: () => Promise<void>;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(sync: () => Promise<void>) {
    this.#sync = sync;
  }

  /** Resolves once everything written before this call is on disk. */
  wait(): Promise<void> {
    if (this.#running === null) return this.#start();
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  /** Resolves when no sync is pending. */
  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running.catch(() => undefined);
  }

  #start(): Promise<void> {
    this.#next = null;
    const running = this.#sync().finally(() => {
      if (this.#running === running) this.#running = null;
    });
    this.#running = running;
    return running;
  }
}
