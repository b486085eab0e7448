import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { networkOf } from "./addresses.ts";
import { Latest } from "./latest.ts";

/** So many mistakes cost nothing. */
const freeTries = 5;
const firstHoldMs = 50;
const longestHoldMs = 5000;
/** Each time that so long passes without one, half of them are forgotten. */
const halvesEveryMs = 60_000;
const mostAddresses = 10_000;
const mostHeld = 256;

export interface FailedTriesOptions {
  readonly clock?: Clock;
  readonly mostAddresses?: number;
  readonly mostHeld?: number;
}

/** What becomes of the answer to a failed try. One `done` for each. */
export interface Slowed {
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
export class FailedTries {
  readonly #clock: Clock;
  readonly #mostHeld: number;
  readonly #tries: Latest<string, Tries>;
  #held = 0;

  constructor(options: FailedTriesOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#mostHeld = options.mostHeld ?? mostHeld;
    this.#tries = new Latest(options.mostAddresses ?? mostAddresses);
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#tries.size;
  }

  failed(address: string): Slowed {
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
