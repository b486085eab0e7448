import { expect } from "vitest";

/** What is read becomes as expected, however busy the machine is. */
export function soon<T>(read: () => T) {
  return expect.poll(read, { timeout: 150_000, interval: 2 });
}
