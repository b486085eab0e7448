import { randomInt } from "node:crypto";
import { isDiskFault } from "../../core/errors.ts";
import type { Ledger } from "../../runs/ledger.ts";

/** Where the numbers of events come from. They only ever go up, over restarts too. */
export interface EventNumbers {
  /** The last that was given out; before the first, one that no event has. */
  readonly last: number;
  next(): number;
  /** Whether this process gave it out. */
  owns(seq: number): boolean;
}

/** EventNumbers for as long as the process lives: for tests, and where nothing is kept. */
export function countFrom(first: number): EventNumbers {
  let last = first - 1;
  return {
    get last() {
      return last;
    },
    next: () => {
      last += 1;
      return last;
    },
    owns: (seq) => seq >= first - 1 && seq <= last,
  };
}

const fact = "gateway.events.reserved";
/** A block that could not be written down begins at most this many blocks ahead. */
const farthest = 1_000_000;

export interface DurableOptions {
  readonly ledger: Ledger;
  readonly blockSize?: number;
  /** Behind what runs now, which may be a transaction that is not kept in the end. */
  readonly later?: (act: () => void) => void;
  /** Told where a block could not be reserved ahead of time. */
  readonly report?: (error: unknown) => void;
}

/**
 * EventNumbers in blocks that are written down before any of them is given out: one write for a million events. What is left
 * of a block when the process ends is never used. A gateway that starts on a full disk takes a block far ahead, which no later
 * process is likely to use, and writes it down as soon as it can.
 */
export function createDurableNumbers(options: DurableOptions): EventNumbers {
  return new DurableNumbers(options);
}

interface Block {
  readonly first: number;
  last: number;
}

class DurableNumbers implements EventNumbers {
  readonly #ledger: Ledger;
  readonly #size: number;
  readonly #later: (act: () => void) => void;
  readonly #report: (error: unknown) => void;
  /** Ours, in order; those that follow one another are one. */
  readonly #blocks: Block[] = [];
  #ahead: Block | null = null;
  #reserveAt: number;
  #last: number;
  #isUnsaved = false;

  constructor({ ledger, blockSize = 1_000_000, later = queueMicrotask, report }: DurableOptions) {
    this.#ledger = ledger;
    this.#size = blockSize;
    this.#later = later;
    this.#report = report ?? (() => undefined);
    const block = this.#firstBlock();
    this.#blocks.push(block);
    // No event's: whoever resumes with it began here, and not with the last event of the process before.
    this.#last = block.first;
    this.#reserveAt = block.last - Math.floor(blockSize / 2);
  }

  get last(): number {
    return this.#last;
  }

  next(): number {
    const block = this.#current();
    if (this.#isUnsaved) this.#later(() => this.#save(block));
    this.#last = this.#last < block.last ? this.#last + 1 : this.#enterNext();
    if (this.#last === this.#reserveAt) this.#later(() => this.#reserveAhead());
    return this.#last;
  }

  owns(seq: number): boolean {
    return seq <= this.#last && this.#blocks.some(({ first, last }) => seq >= first && seq <= last);
  }

  #current(): Block {
    return this.#blocks.at(-1) as Block;
  }

  #enterNext(): number {
    const block = this.#ahead ?? this.#reserve();
    this.#ahead = null;
    const before = this.#current();
    if (block.first === before.last + 1) before.last = block.last;
    else this.#blocks.push(block);
    this.#reserveAt = block.last - Math.floor(this.#size / 2);
    return block.first;
  }

  /** A disk that does not take it is asked again a while later, and for the last time when the block is used up. */
  #reserveAhead(): void {
    if (this.#ahead !== null) return;
    try {
      this.#ahead = this.#reserve();
    } catch (error) {
      this.#reserveAt = this.#last + Math.max(1, Math.floor(this.#size / 20));
      this.#report(error);
    }
  }

  #firstBlock(): Block {
    try {
      return this.#reserve();
    } catch (error) {
      if (!isDiskFault(error)) throw error;
      this.#report(error);
      this.#isUnsaved = true;
      const before = this.#reserved() + randomInt(1, farthest) * this.#size;
      return { first: before + 1, last: before + this.#size };
    }
  }

  /** Tried with every event until it succeeds. */
  #save({ last }: Block): void {
    if (!this.#isUnsaved) return;
    try {
      this.#ledger.exclusively(() => this.#write(Math.max(last, this.#reserved())));
      this.#isUnsaved = false;
    } catch (error) {
      if (!isDiskFault(error)) this.#report(error);
    }
  }

  #reserve(): Block {
    return this.#ledger.exclusively(() => {
      // A block that could not be written down yet may lie ahead.
      const before = Math.max(this.#reserved(), this.#blocks.at(-1)?.last ?? 0);
      const last = before + this.#size;
      this.#write(last);
      return { first: before + 1, last };
    });
  }

  #reserved(): number {
    return Number(this.#ledger.sql("SELECT value FROM facts WHERE name = ?").get(fact)?.value ?? 0);
  }

  #write(last: number): void {
    this.#ledger.run("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", fact, String(last));
  }
}
