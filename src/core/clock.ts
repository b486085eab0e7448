/** Where the time comes from, in milliseconds since 1970. Injected, so that tests own it. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
