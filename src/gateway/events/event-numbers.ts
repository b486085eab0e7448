import { randomInt } from "node:crypto";
import { isDiskFault } from "../../core/errors.ts";
import type { Ledger } from "../../runs/contract.ts";

/** The sequence numbers of events. They only increase, even across restarts. */
export interface EventNumbers {
  /** The last number used. Before the first event, this is a number that no event has. */
  readonly last: number;
  next(): number;
  /** Whether this process issued the number. */
  owns(seq: number): boolean;
}

/** Counts within the lifetime of the process, for tests and for gateways without a database. */
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
/** If a block cannot be saved, the process uses one that starts at most this many blocks ahead. */
const farthest = 1_000_000;

export interface DurableOptions {
  readonly ledger: Ledger;
  readonly blockSize?: number;
  /** Runs `act` after the current code, which might be inside a transaction that is rolled back. */
  readonly later?: (act: () => void) => void;
  /** Called when the next block could not be reserved ahead of time. */
  readonly report?: (error: unknown) => void;
}

/**
 * Issues numbers from blocks that are saved before their first use, with one write per million events. The rest of a
 * block is lost when the process exits. A gateway that starts on a full disk uses a block far ahead that no later
 * process is likely to use. It saves the block as soon as it can.
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
  /** The blocks that this process has reserved, in order. Adjacent blocks are merged. */
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
    // No event has this number. A client that resumes from it has not seen any event from this process yet.
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

  /** If the write fails, it is retried later, and once more when the block is used up. */
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

  /** Retried with every event until the write succeeds. */
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
      // A block that has not been saved yet might be further ahead.
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
