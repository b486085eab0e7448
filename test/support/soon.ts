import { expect } from "vitest";

/** Waits until the value is as expected, no matter how busy the machine is. */
export function soon<T>(read: () => T) {
  return expect.poll(read, { timeout: 150_000, interval: 2 });
}
