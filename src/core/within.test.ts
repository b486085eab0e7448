import { describe, expect, test } from "vitest";
import { within } from "./within.ts";

describe("work that is waited for", () => {
  test("[GST9] what is done in time is told, what fails is thrown, and what takes too long is left behind", async () => {
    expect(await within(60_000, Promise.resolve("done"))).toBe(true);
    await expect(within(60_000, Promise.reject(new Error("no")))).rejects.toThrow("no");
    const { promise, reject } = Promise.withResolvers<void>();
    expect(await within(0, promise)).toBe(false);
    // Nobody waits for it any more, and it harms nobody.
    reject(new Error("too late"));
  });
});
