import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import type { Sleep } from "../../core/concurrency.ts";
import { sleep } from "../../core/concurrency.ts";

/** Services that are injected into the loop, so that tests can control them. */
export interface LoopServices {
  readonly clock: Clock;
  /** From 0 to 1, exclusive. */
  readonly random: () => number;
  readonly sleep: Sleep;
  /** Masks secrets in error texts of providers: some repeat the key that they were sent. */
  readonly redact: (text: string) => string;
}

export function loopServices(given: Partial<LoopServices> = {}): LoopServices {
  return { clock: systemClock, random: Math.random, sleep, redact: (text) => text, ...given };
}
