import { hashedId } from "../../../core/hashed-id.ts";
import { shortHash } from "../../../core/short-hash.ts";

const plain = /^[A-Za-z0-9_.:-]{1,64}$/;

const longestId = 200;

/** An id of an agent's own, to tell one from another: of a long one only what follows from it is kept. */
export function boundedId(id: string): string {
  return id.length > longestId ? hashedId(id) : id;
}

/** Ids of calls that are safe to write and each given once, whatever an agent calls its own. */
export class SafeIds {
  readonly #given = new Set<string>();
  /** How often each was wanted, so that a thousand equal ones take a thousand tries. */
  readonly #turns = new Map<string, number>();

  take(original: string): string {
    const base = plain.test(original) ? original : `call_${shortHash(original)}`;
    for (let turn = (this.#turns.get(base) ?? 0) + 1; ; turn++) {
      const id = turn === 1 ? base : `${base}-${turn}`;
      if (this.#given.has(id)) continue;
      this.#turns.set(base, turn);
      this.#given.add(id);
      return id;
    }
  }
}
