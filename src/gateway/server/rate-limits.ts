import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { networkOf } from "../auth/addresses.ts";

/**
 * Limits per token, stored by token ID. There are few tokens, because creating one requires another token or access to
 * the folder.
 */

const requestsPerSecond = 200;
/** The cost of a request. Each millisecond adds `perSecond` units. Integers do not accumulate rounding errors. */
const unitsPerRequest = 1000;
const socketsPerToken = 64;
const mostTokens = 10_000;

export interface RequestRateOptions {
  readonly clock?: Clock;
  /** Also the burst size. Must be an integer. */
  readonly perSecond?: number;
  readonly mostTokens?: number;
}

interface Bucket {
  readonly unitsLeft: number;
  readonly at: number;
}

/** Limits requests with one token bucket per token. */
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

  /** Returns 0 if the request is allowed, or the number of milliseconds until one would be. */
  take(tokenId: string): number {
    const now = this.#clock.now();
    const maxUnits = this.#perSecond * unitsPerRequest;
    const before = this.#buckets.get(tokenId) ?? { unitsLeft: maxUnits, at: now };
    const refilled = Math.max(0, now - before.at) * this.#perSecond;
    const available = Math.min(maxUnits, before.unitsLeft + refilled);
    const unitsLeft = available - unitsPerRequest;
    const isTaken = unitsLeft >= 0;
    this.#buckets.set(tokenId, { unitsLeft: isTaken ? unitsLeft : available, at: now });
    return isTaken ? 0 : Math.ceil(-unitsLeft / this.#perSecond);
  }
}

/** Limits concurrent sockets, streams or requests per token. */
export class OpenCounter {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number = socketsPerToken) {
    this.#most = most;
  }

  /** The number of tokens that hold at least one slot. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Returns a function that releases the slot and can safely be called twice. Returns `null` if the token has reached
   * its limit.
   */
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

/** The number of failures before responses are delayed. */
const freeTries = 5;
const firstHoldMs = 50;
const longestHoldMs = 5000;
/** The number of failures is halved after each period without a failure. */
const halvesEveryMs = 60_000;
const mostAddresses = 10_000;
const mostHeld = 256;

export interface FailedAttemptsOptions {
  readonly clock?: Clock;
  readonly mostAddresses?: number;
  readonly mostHeld?: number;
}

/** How to respond to a failed attempt. Call `done` after responding. */
export interface AttemptDelay {
  /** How long to delay the response. */
  readonly holdMs: number;
  /** Set if too many responses are already being delayed. This response is then sent immediately as `rate_limited`. */
  readonly retryAfterMs: number | null;
  done(): void;
}

interface Tries {
  readonly count: number;
  readonly at: number;
}

/**
 * Delays responses to wrong secrets, separately for each network address. Requests with a valid token are never delayed
 * and do not reset the count.
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

  /** The number of networks being tracked. */
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

/** Returns the delay after this many failures. */
export function holdFor(count: number): number {
  return count <= freeTries ? 0 : Math.min(longestHoldMs, firstHoldMs * 2 ** (count - freeTries - 1));
}

/** Returns the number of failures after decay. If the clock has gone backward, there is no decay. */
function countAt(tries: Tries | undefined, now: number): number {
  if (tries === undefined) return 0;
  const halvings = Math.floor(Math.max(0, now - tries.at) / halvesEveryMs);
  // Failures beyond those needed for the longest delay are ignored so that recovery does not take longer.
  return Math.floor(Math.min(tries.count, freeTries + 8) / 2 ** halvings);
}

/** Bytes reserved under names, with a limit per name and a total limit. */
export class ByteBudget {
  readonly #maxPerName: number;
  readonly #maxTotal: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(maxPerName: number, maxTotal = Number.POSITIVE_INFINITY) {
    this.#maxPerName = maxPerName;
    this.#maxTotal = maxTotal;
  }

  /** The number of names that have bytes reserved. */
  get size(): number {
    return this.#held.size;
  }

  /** Returns `false` and reserves nothing if a limit would be exceeded. */
  take(name: string, bytes: number): boolean {
    const held = (this.#held.get(name) ?? 0) + bytes;
    if (held > this.#maxPerName || this.#total + bytes > this.#maxTotal) return false;
    if (held > 0) this.#held.set(name, held);
    this.#total += bytes;
    return true;
  }

  /** Releases bytes that `take` reserved. */
  give(name: string, bytes: number): void {
    const left = (this.#held.get(name) ?? 0) - bytes;
    if (left > 0) this.#held.set(name, left);
    else this.#held.delete(name);
    this.#total -= bytes;
  }
}

/** A map with a maximum size. When it is full, the least recently set entry is evicted. */
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
