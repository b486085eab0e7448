/**
 * Where the time comes from, in milliseconds since 1970. Injected, so that tests own it.
 *
 * @example
 * ```ts
 * import { type Clock, SessionTree } from "skein";
 * const noon: Clock = { now: () => Date.UTC(2026, 0, 1, 12) };
 * const tree = SessionTree.create({ cwd: "/home/ann" }, { clock: noon });
 * ```
 */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
