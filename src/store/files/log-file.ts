import { SkeinError } from "../../core/errors.ts";
import type { Disk, DiskFile, DiskStat } from "./disk.ts";
import { appendWhole } from "./disk.ts";

/** An append that is with the kernel, and not yet known to be on the disk. */
export interface LogMark {
  readonly start: number;
  /** Where the log ended with it. More than was written: somebody else wrote too. */
  readonly end: number;
  readonly bytes: number;
  readonly epoch: number;
}

const lineBreak = 0x0a;

/** The log of a session: only ever added to, under the session's lock, and made durable in groups. */
export class LogFile {
  readonly #path: string;
  readonly #disk: Disk;
  readonly #sync: GroupSync;
  readonly #report: (problem: string) => void;
  #file: DiskFile;
  #identity: string;
  /** Where our own last append ended: with a line break. */
  #ownEnd = -1;
  /** Where the first append begins that is not on the disk yet. */
  #unsynced: number | null = null;
  /** Moves on when unsynced appends are taken back: all of that time are lost, whatever a later sync says. */
  #epoch = 0;
  /** A sync has failed: what it should have covered is lost, even if the next one succeeds. */
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

  /** Adds lines behind `start`, where the log is known to end. A failed write leaves nothing behind, if it can be. */
  append(start: number, lines: readonly string[]): LogMark {
    const torn = this.#ownEnd !== start && start > 0 && this.#file.read(start - 1, 1)[0] !== lineBreak;
    const bytes = Buffer.from(`${torn ? "\n" : ""}${lines.join("\n")}\n`);
    try {
      appendWhole(this.#file, bytes);
    } catch (error) {
      const advice = this.#cutBack(start, start + bytes.length)
        ? "Nothing was written; make room on the disk and try again"
        : retryAdvice;
      throw failed(this.#path, (error as Error).message, advice, error);
    }
    this.#unsynced ??= start;
    const end = this.#file.size();
    this.#ownEnd = end === start + bytes.length ? end : -1;
    return { start, end, bytes: bytes.length, epoch: this.#epoch };
  }

  /** Resolves once an append is on the disk; rejects when it is not, or was taken back meanwhile. */
  async kept(mark: LogMark): Promise<void> {
    try {
      await this.#sync.wait();
    } catch (error) {
      throw failed(this.#path, `the disk did not keep it (${(error as Error).message})`, retryAdvice, error);
    }
    if (this.#isPoisoned || mark.epoch !== this.#epoch) {
      throw failed(this.#path, "the disk did not keep an append before it", retryAdvice);
    }
    this.noteWritten(mark);
  }

  /** Everything up to an append counts as kept. */
  noteWritten(mark: LogMark): void {
    if (this.#unsynced !== null && this.#unsynced < mark.end)
      this.#unsynced = mark.end === this.#ownEnd ? null : mark.end;
  }

  /**
   * After a failed sync nobody knows what is on the disk: all that was not acknowledged is taken back, unless somebody
   * else wrote behind it. `false`: there is nothing of that kind. To be called alone, and before the next append.
   */
  takeBack(): boolean {
    if (!this.#isPoisoned) return false;
    this.#isPoisoned = false;
    this.#epoch += 1;
    if (this.#unsynced !== null && this.#ownEnd !== -1) this.#cutBack(this.#unsynced, this.#ownEnd);
    this.#unsynced = null;
    this.#ownEnd = -1;
    const old = this.#file;
    this.#file = this.#disk.open(this.#path);
    this.#identity = this.#file.stat().identity;
    // A sync of it may still be under way, and must not hit another file under the same number.
    void this.#sync.idle().then(() => old.close());
    return true;
  }

  /** Another process may have put another file under our name. `true`: it has, and that one is open now. */
  followName(): boolean {
    const named = this.#disk.stat(this.#path);
    if (named === null) throw new FileClosed();
    return this.follow(named);
  }

  follow({ identity }: DiskStat): boolean {
    if (identity === this.#identity) return false;
    const old = this.#file;
    this.#file = this.#disk.open(this.#path);
    // Whoever put it there synced all that was in the old one; a sync of that may still be under way.
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
      // Of a file that has been replaced since, everything unsynced is taken back already.
      if (file === this.#file) this.#isPoisoned = true;
      throw error;
    }
  }

  /** `false`: our bytes are still there, because others are behind them or the disk does not let us. */
  #cutBack(start: number, end: number): boolean {
    try {
      const size = this.#file.size();
      if (size > end) return false;
      if (size > start) this.#file.truncate(start);
      return true;
    } catch (error) {
      this.#report(`a failed write could not be taken back: ${(error as Error).message}`);
      return false;
    }
  }
}

/** The files were put away meanwhile: whoever meets it looks the session up again. */
export class FileClosed extends Error {
  override readonly name = "FileClosed";
}

const retryAdvice = "Try again with the same id";

export function failed(file: string, problem: string, advice: string, cause?: unknown): SkeinError {
  return new SkeinError("write_failed", { file, problem, advice }, { cause });
}

/**
 * One sync for all who wait: whoever comes while one is under way shares the next, which begins after it and so
 * covers everything written before it was asked for.
 */
class GroupSync {
  readonly #sync: () => Promise<void>;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(sync: () => Promise<void>) {
    this.#sync = sync;
  }

  /** Resolves once everything written before this call is on the disk. */
  wait(): Promise<void> {
    if (this.#running === null) return this.#start();
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  /** Resolves when nothing is under way. */
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
