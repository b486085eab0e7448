import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SingleFlight } from "../../console/src/connect/single-flight.ts";
import { excerptAt } from "../../console/src/ui/highlight-text.tsx";

/** Reads that the test completes. */
function heldReads() {
  const open: PromiseWithResolvers<void>[] = [];
  const reads = new SingleFlight(() => {
    open.push(Promise.withResolvers<void>());
    return (open.at(-1) as PromiseWithResolvers<void>).promise;
  });
  return { open, reads };
}

describe("readings one at a time", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("requests during a reading cause one more after it", async () => {
    const { open, reads } = heldReads();
    const first = reads.request();
    void reads.request();
    void reads.request();
    expect(open.length).toBe(1);
    open[0]?.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect(open.length).toBe(2);
    open[1]?.resolve();
    await first;
    expect([open.length, reads.isRunning]).toEqual([2, false]);
    void reads.request();
    expect(open.length).toBe(3);
  });

  test("requests in quick succession cause one reading", async () => {
    const { open, reads } = heldReads();
    reads.requestSoon();
    reads.requestSoon();
    await vi.advanceTimersByTimeAsync(1000);
    expect(open.length).toBe(1);
  });

  test("a reading that failed is repeated later and later, at once on request, and not after closing", async () => {
    const { open, reads } = heldReads();
    const fail = async () => {
      open.at(-1)?.reject(new Error("down"));
      await vi.advanceTimersByTimeAsync(0);
    };
    void reads.request();
    await fail();
    await vi.advanceTimersByTimeAsync(1000);
    expect(open.length).toBe(2);
    await fail();
    await vi.advanceTimersByTimeAsync(1000);
    expect(open.length).toBe(2);
    void reads.request();
    expect(open.length).toBe(3);
    await fail();
    reads.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(open.length).toBe(3);
  });
});

describe("the words of the find bar in a row", () => {
  test("are marked in a short text, ignoring case", () => {
    expect(excerptAt("Warp and wARp.", "warp")).toEqual(["", "Warp", " and ", "wARp", "."]);
    expect(excerptAt("İstanbul warp", "WARP")).toEqual(["İstanbul ", "warp", ""]);
  });

  test("are shown with their surroundings in a long text, the first of them only", () => {
    const hay = "hay ".repeat(10_000);
    const parts = excerptAt(`${hay}needle ${hay}needle ${hay}`, "needle");
    expect(parts.filter((_, index) => index % 2 === 1)).toEqual(["needle", "needle"]);
    expect(parts.join("").length).toBeLessThan(2000);
    expect(excerptAt("needle ".repeat(10_000), "needle").length).toBeLessThan(50);
  });
});
