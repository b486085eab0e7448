import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { Latest } from "./latest.ts";

/** How much one token may do at once. By token id; tokens are few, and who makes them is no stranger. */

const requestsPerSecond = 200;
const socketsPerToken = 64;
const mostTokens = 10_000;

export interface RequestRateOptions {
  readonly clock?: Clock;
  /** A second's worth may come at once. */
  readonly perSecond?: number;
  readonly mostTokens?: number;
}

interface Bucket {
  readonly left: number;
  readonly at: number;
}

/** Requests a second, as a bucket that fills up again evenly. */
export class RequestRate {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #buckets: Latest<string, Bucket>;

  constructor(options: RequestRateOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#perSecond = options.perSecond ?? requestsPerSecond;
    this.#buckets = new Latest(options.mostTokens ?? mostTokens);
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** 0: take it. Else it is refused, and after so many milliseconds one would be taken. */
  take(tokenId: string): number {
    const now = this.#clock.now();
    const before = this.#buckets.get(tokenId) ?? { left: this.#perSecond, at: now };
    const filled = (Math.max(0, now - before.at) / 1000) * this.#perSecond;
    const left = Math.min(this.#perSecond, before.left + filled);
    const isTaken = left >= 1;
    this.#buckets.set(tokenId, { left: isTaken ? left - 1 : left, at: now });
    return isTaken ? 0 : Math.max(1, Math.ceil(((1 - left) / this.#perSecond) * 1000));
  }
}

/** What a token has open at once: sockets and streams, or requests. */
export class OpenCount {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number = socketsPerToken) {
    this.#most = most;
  }

  /** How many tokens have any. */
  get size(): number {
    return this.#open.size;
  }

  /** What to call once it is closed; a second call does nothing. `null`: the token has as many as it may. */
  open(tokenId: string): (() => void) | null {
    const count = this.#open.get(tokenId) ?? 0;
    if (count >= this.#most) return null;
    this.#open.set(tokenId, count + 1);
    let isOpen = true;
    return () => {
      if (isOpen) this.#close(tokenId);
      isOpen = false;
    };
  }

  #close(tokenId: string): void {
    const left = (this.#open.get(tokenId) ?? 1) - 1;
    if (left === 0) this.#open.delete(tokenId);
    else this.#open.set(tokenId, left);
  }
}
