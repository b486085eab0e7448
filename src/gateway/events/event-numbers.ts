import { randomInt } from "node:crypto";
import { isDiskFault } from "../../core/errors.ts";
import type { Script, ScriptEngine } from "../../core/script.ts";
import { changeRows, queryRow } from "../../core/script.ts";

/** The sequence numbers of one process's events. They only increase, even across restarts. */
export interface EventNumbers {
  /** The last number used. Before the first event, this is a number that no event will have. */
  readonly last: number;
  next(): number;
  /** Whether this process issued the number. */
  owns(seq: number): boolean;
}

/** Counts in memory, for tests and for gateways without a database. */
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
/** A block that cannot be saved starts at most this many blocks ahead. */
const farthest = 1_000_000;

export interface DurableOptions {
  readonly engine: Pick<ScriptEngine, "read" | "change">;
  readonly blockSize?: number;
  /** Called when a block could not be saved. */
  readonly report?: (error: unknown) => void;
}

/**
 * Issues numbers from blocks that are saved before their first use, with one write per million events. The rest of a
 * block is skipped when the process exits. If a block cannot be saved, for example on a full disk, the process uses a
 * block so far ahead that no other process is likely to use it. The process saves that block as soon as it can.
 */
export async function openDurableNumbers(options: DurableOptions): Promise<EventNumbers> {
  const { engine, blockSize = 1_000_000, report = () => undefined } = options;
  const first = await reserveBlock(engine, blockSize).catch(async (error: unknown) => {
    if (!isDiskFault(error)) throw error;
    report(error);
    return blockFarAfter(await engine.read(readReserved), blockSize);
  });
  return new DurableNumbers({ engine, blockSize, report }, first);
}

interface Block {
  readonly first: number;
  last: number;
  isSaved: boolean;
}

function blockFarAfter(reserved: number, size: number): Block {
  const before = reserved + randomInt(1, farthest) * size;
  return { first: before + 1, last: before + size, isSaved: false };
}

function reserveBlock(engine: DurableOptions["engine"], size: number): Promise<Block> {
  return engine.change("synced", "gateway", function* () {
    const before = yield* readReserved();
    yield* writeReserved(before + size);
    return { first: before + 1, last: before + size, isSaved: true };
  });
}

function* readReserved(): Script<number> {
  return Number((yield* queryRow("SELECT value FROM facts WHERE name = ?", fact))?.value ?? 0);
}

function* writeReserved(last: number): Script<void> {
  yield* changeRows(
    "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    fact,
    String(last),
  );
}

class DurableNumbers implements EventNumbers {
  readonly #options: Required<DurableOptions>;
  /** The blocks that this process has used, in order. Adjacent blocks are merged. */
  readonly #blocks: Block[];
  #ahead: Block | null = null;
  /** The number at which the next write is due. */
  #saveAt: number;
  #isSaving = false;
  #last: number;

  constructor(options: Required<DurableOptions>, first: Block) {
    this.#options = options;
    this.#blocks = [first];
    this.#saveAt = this.#dueIn(first);
    // No event has this number. A client that resumes from it has not seen any event from this process yet.
    this.#last = first.first;
  }

  get last(): number {
    return this.#last;
  }

  next(): number {
    this.#last = this.#last < this.#current().last ? this.#last + 1 : this.#enterNext();
    if (this.#last >= this.#saveAt && !this.#isSaving) void this.#save(this.#current());
    return this.#last;
  }

  owns(seq: number): boolean {
    return seq <= this.#last && this.#blocks.some(({ first, last }) => seq >= first && seq <= last);
  }

  #current(): Block {
    return this.#blocks.at(-1) as Block;
  }

  #dueIn({ first, last, isSaved }: Block): number {
    return isSaved ? last - Math.floor(this.#options.blockSize / 2) : first;
  }

  #enterNext(): number {
    const before = this.#current();
    const block = this.#ahead ?? blockFarAfter(before.last, this.#options.blockSize);
    this.#ahead = null;
    this.#saveAt = this.#dueIn(block);
    if (block.first === before.last + 1) before.last = block.last;
    else this.#blocks.push(block);
    return block.first;
  }

  /** Saves the block if it is not saved yet. Otherwise, reserves the next one. A failed write is retried later. */
  async #save(block: Block): Promise<void> {
    const { engine, blockSize, report } = this.#options;
    this.#isSaving = true;
    // The caller might be inside a transaction that is rolled back.
    await Promise.resolve();
    try {
      if (block.isSaved) this.#keepAhead(await reserveBlock(engine, blockSize));
      else {
        await engine.change("synced", "gateway", function* () {
          yield* writeReserved(Math.max(block.last, yield* readReserved()));
        });
        block.isSaved = true;
      }
      this.#saveAt = this.#ahead === null ? this.#dueIn(this.#current()) : Number.POSITIVE_INFINITY;
    } catch (error) {
      report(error);
      this.#saveAt = this.#last + (block.isSaved ? Math.ceil(blockSize / 20) : 1);
    } finally {
      this.#isSaving = false;
    }
  }

  /** A block that was reserved too late is not used, because numbers never decrease. */
  #keepAhead(block: Block): void {
    if (block.first > this.#last) this.#ahead = block;
  }
}
