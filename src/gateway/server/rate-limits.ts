import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { networkOf } from "../auth/addresses.ts";

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
export class RequestRateLimiter {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #buckets: BoundedMap<string, Bucket>;

  constructor(options: RequestRateOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#perSecond = options.perSecond ?? requestsPerSecond;
    this.#buckets = new BoundedMap(options.mostTokens ?? mostTokens);
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
export class OpenCounter {
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

/** So many mistakes cost nothing. */
const freeTries = 5;
const firstHoldMs = 50;
const longestHoldMs = 5000;
/** Each time that so long passes without one, half of them are forgotten. */
const halvesEveryMs = 60_000;
const mostAddresses = 10_000;
const mostHeld = 256;

export interface FailedAttemptsOptions {
  readonly clock?: Clock;
  readonly mostAddresses?: number;
  readonly mostHeld?: number;
}

/** What becomes of the answer to a failed try. One `done` for each. */
export interface AttemptDelay {
  /** So long the answer is held back. */
  readonly holdMs: number;
  /** Too many answers are held back already: this one goes out at once, as `rate_limited`. `null`: it is not so. */
  readonly retryAfterMs: number | null;
  done(): void;
}

interface Tries {
  readonly count: number;
  readonly at: number;
}

/**
 * Slows whoever shows secrets that are none, by address. Asked only once a secret was found wrong: a valid token is let
 * in whatever was tried from its address, and makes nobody's failures forgotten.
 */
export class FailedAttempts {
  readonly #clock: Clock;
  readonly #mostHeld: number;
  readonly #tries: BoundedMap<string, Tries>;
  #held = 0;

  constructor(options: FailedAttemptsOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#mostHeld = options.mostHeld ?? mostHeld;
    this.#tries = new BoundedMap(options.mostAddresses ?? mostAddresses);
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#tries.size;
  }

  failed(address: string): AttemptDelay {
    const network = networkOf(address);
    const at = this.#clock.now();
    const count = countAt(this.#tries.get(network), at) + 1;
    this.#tries.set(network, { count, at });
    const holdMs = holdFor(count);
    if (holdMs === 0) return { holdMs, retryAfterMs: null, done: () => undefined };
    if (this.#held >= this.#mostHeld) return { holdMs: 0, retryAfterMs: holdMs, done: () => undefined };
    this.#held += 1;
    let isDone = false;
    const done = () => {
      if (!isDone) this.#held -= 1;
      isDone = true;
    };
    return { holdMs, retryAfterMs: null, done };
  }
}

/** How long the answer to the so-manieth failure is held back. */
export function holdFor(count: number): number {
  return count <= freeTries ? 0 : Math.min(longestHoldMs, firstHoldMs * 2 ** (count - freeTries - 1));
}

/** What is left of earlier failures. A clock that was set back leaves all of them. */
function countAt(tries: Tries | undefined, now: number): number {
  if (tries === undefined) return 0;
  const halvings = Math.floor(Math.max(0, now - tries.at) / halvesEveryMs);
  // Beyond the longest hold more failures count no more, so that they are forgotten as soon as those.
  return Math.floor(Math.min(tries.count, freeTries + 8) / 2 ** halvings);
}

/** Memory that is held under names, bounded for each name and for all of them together. */
export class ByteBudget {
  readonly #maxPerName: number;
  readonly #maxTotal: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(maxPerName: number, maxTotal = Number.POSITIVE_INFINITY) {
    this.#maxPerName = maxPerName;
    this.#maxTotal = maxTotal;
  }

  /** How many names hold any. */
  get size(): number {
    return this.#held.size;
  }

  /** `false`: they would be too many, and none of them is held. */
  take(name: string, bytes: number): boolean {
    const held = (this.#held.get(name) ?? 0) + bytes;
    if (held > this.#maxPerName || this.#total + bytes > this.#maxTotal) return false;
    if (held > 0) this.#held.set(name, held);
    this.#total += bytes;
    return true;
  }

  /** What was taken before is held no longer. */
  give(name: string, bytes: number): void {
    const left = (this.#held.get(name) ?? 0) - bytes;
    if (left > 0) this.#held.set(name, left);
    else this.#held.delete(name);
    this.#total -= bytes;
  }
}

/** A table of bounded size: the one that was set longest ago makes room. */
export class BoundedMap<Key, Value> {
  readonly #most: number;
  readonly #rows = new Map<Key, Value>();

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#rows.size;
  }

  get(key: Key): Value | undefined {
    return this.#rows.get(key);
  }

  set(key: Key, value: Value): void {
    this.#rows.delete(key);
    this.#rows.set(key, value);
    if (this.#rows.size <= this.#most) return;
    const [oldest] = this.#rows.keys();
    this.#rows.delete(oldest as Key);
  }
}
