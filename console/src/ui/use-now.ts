import { useState, useSyncExternalStore } from "react";

/** One timer for all components that show the same clock. */
class Clock {
  readonly #everyMs: number;
  readonly #listeners = new Set<() => void>();
  #timer: ReturnType<typeof setInterval> | null = null;
  #now = Date.now();

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  readonly now = (): number => this.#now;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#timer === null) {
      this.#now = Date.now();
      this.#timer = setInterval(() => this.#tick(), this.#everyMs);
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0 || this.#timer === null) return;
      clearInterval(this.#timer);
      this.#timer = null;
    };
  };

  #tick(): void {
    this.#now = Date.now();
    for (const listener of [...this.#listeners]) listener();
  }
}

const clocks = { second: new Clock(1000), minute: new Clock(60_000) };
const unsubscribed = () => () => undefined;

/** The current time, updated every second or minute while `isRunning`. */
export function useNow(isRunning = true, unit: keyof typeof clocks = "second"): number {
  const [mountedAt] = useState(() => Date.now());
  const clock = clocks[unit];
  const now = useSyncExternalStore(isRunning ? clock.subscribe : unsubscribed, clock.now);
  return Math.max(now, mountedAt);
}
