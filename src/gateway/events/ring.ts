import type { KeptEvent } from "./kept-event.ts";

export interface RingLimits {
  readonly events: number;
  readonly bytes: number;
}

/** The last events, as many as fit. Their numbers go up, not always by one. */
export class Ring {
  readonly #limits: RingLimits;
  readonly #slots: (KeptEvent | undefined)[] = [];
  /** Places are counted on and on; the slot is the rest by the number of slots. */
  #from = 0;
  #to = 0;
  #bytes = 0;
  #goneUpTo: number;

  /** `last`: the number before the first that comes. */
  constructor(limits: RingLimits, last: number) {
    this.#limits = limits;
    this.#goneUpTo = last;
  }

  /** Of what came up to this number nothing is kept; of what came behind it everything. */
  get goneUpTo(): number {
    return this.#goneUpTo;
  }

  get size(): number {
    return this.#to - this.#from;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(kept: KeptEvent): void {
    if (this.size === this.#limits.events) this.#dropFirst();
    this.#slots[this.#to % this.#limits.events] = kept;
    this.#to += 1;
    this.#bytes += kept.bytes;
    while (this.#bytes > this.#limits.bytes && this.size > 0) this.#dropFirst();
  }

  /** The first one behind a number. */
  behind(seq: number): KeptEvent | null {
    let [low, high] = [this.#from, this.#to];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.#at(middle).seq > seq) high = middle;
      else low = middle + 1;
    }
    return low === this.#to ? null : this.#at(low);
  }

  /** Those about a session. */
  *of(userId: string | null, sessionId: string): Iterable<KeptEvent> {
    for (let place = this.#from; place < this.#to; place += 1) {
      const kept = this.#at(place);
      if (kept.event.sessionId === sessionId && kept.event.userId === userId) yield kept;
    }
  }

  #at(place: number): KeptEvent {
    return this.#slots[place % this.#limits.events] as KeptEvent;
  }

  #dropFirst(): void {
    const kept = this.#at(this.#from);
    this.#slots[this.#from % this.#limits.events] = undefined;
    this.#from += 1;
    this.#bytes -= kept.bytes;
    this.#goneUpTo = kept.seq;
  }
}
