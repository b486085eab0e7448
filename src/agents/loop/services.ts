import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import type { Sleep } from "../../core/concurrency.ts";
import { sleep } from "../../core/concurrency.ts";

/** Services injected into the loop so that tests can control them. */
export interface LoopServices {
  readonly clock: Clock;
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  readonly sleep: Sleep;
  /** Masks secrets in provider errors, because some providers echo the key they received. */
  readonly redact: (text: string) => string;
}

export function loopServices(given: Partial<LoopServices> = {}): LoopServices {
  return { clock: systemClock, random: Math.random, sleep, redact: (text) => text, ...given };
}
