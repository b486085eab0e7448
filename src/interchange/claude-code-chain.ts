import type { CollectedEntry } from "./entry-collector.ts";

/**
 * An entry with those behind it that belong to it: the results of its calls, and what nobody said. Claude Code writes
 * an answer as several lines and hangs each result on the line of its call; here the answer is one entry, and its
 * results follow one another.
 */
export interface Chain {
  readonly head: CollectedEntry;
  /** The provider's id of an answer; lines that share it are one. */
  readonly messageId: string | null;
  /** Calls without a result. */
  readonly open: Set<string>;
  tail: string;
}

/** Which entry a uuid became, and where the next one behind it hangs. */
export class ClaudeChains {
  readonly #entryOf = new Map<string, string | null>();
  readonly #chains = new Map<string, Chain>();
  /** Entries that a compaction kept: what was said behind them later was said behind the compaction. */
  readonly #movedTo = new Map<string, string>();

  /** `null`: the line is passed over, and was a root. */
  place(uuid: string, entryId: string | null): void {
    this.#entryOf.set(uuid, entryId);
  }

  has(uuid: string): boolean {
    return this.#entryOf.has(uuid);
  }

  entryOf(uuid: string): string | null {
    return this.#entryOf.get(uuid) ?? null;
  }

  begin(head: CollectedEntry, messageId: string | null = null): Chain {
    const chain = { head, messageId, open: new Set<string>(), tail: head.id };
    this.#chains.set(head.id, chain);
    return chain;
  }

  at(entryId: string | null): Chain | null {
    return this.#chains.get(entryId ?? "") ?? null;
  }

  extend(chain: Chain, entryId: string): void {
    chain.tail = entryId;
    this.#chains.set(entryId, chain);
  }

  move(entryId: string, compactionId: string): void {
    this.#movedTo.set(entryId, compactionId);
  }

  /** Where an entry hangs that the source hangs on this one. */
  behind(entryId: string | null): string | null {
    if (entryId === null) return null;
    let id = entryId;
    for (;;) {
      const tail: string = this.#chains.get(id)?.tail ?? id;
      const next = this.#movedTo.get(tail) ?? this.#movedTo.get(id);
      if (next === undefined) return tail;
      id = next;
    }
  }
}
