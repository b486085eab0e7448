import { describe, expect, test } from "vitest";
import type { Grace } from "./current.ts";
import { Current } from "./current.ts";

const grace: Grace = { runsMs: 1000, callsMs: 500 };

/** Closes when the test says so. */
function one(name: string) {
  const closed = Promise.withResolvers<void>();
  const asked: Grace[] = [];
  const close = (given: Grace) => {
    asked.push(given);
    return closed.promise;
  };
  return { name, close, asked, end: closed.resolve, fail: closed.reject };
}

describe("what serves now", () => {
  test("[GST9] a swap is seen at once, and what was replaced is closed in its own time", async () => {
    const [first, second] = [one("first"), one("second")];
    const current = new Current(first, () => undefined);
    expect({ name: current.get().name, leaving: current.leaving }).toEqual({ name: "first", leaving: 0 });
    current.swap(second, grace);
    expect({ name: current.get().name, leaving: current.leaving }).toEqual({ name: "second", leaving: 1 });
    expect({ first: first.asked, second: second.asked }).toEqual({ first: [grace], second: [] });
    first.end();
    await expect.poll(() => current.leaving).toBe(0);
    expect(second.asked).toEqual([]);
  });

  test("[GST9] closing waits for those that went before, and says so where they do not end", async () => {
    const [first, second, third] = [one("1"), one("2"), one("3")];
    const current = new Current(first, () => undefined);
    current.swap(second, grace);
    current.swap(third, grace);
    let isClean: boolean | null = null;
    const closing = current.close({ runsMs: 2000, callsMs: 0 }).then((clean) => {
      isClean = clean;
    });
    expect(third.asked).toEqual([{ runsMs: 2000, callsMs: 0 }]);
    // They have no more time than it has.
    expect([first.asked, second.asked]).toEqual([
      [grace, { runsMs: 2000, callsMs: 0 }],
      [grace, { runsMs: 2000, callsMs: 0 }],
    ]);
    third.end();
    second.end();
    await expect.poll(() => current.leaving).toBe(1);
    expect(isClean).toBe(null);
    first.end();
    await closing;
    expect(isClean).toBe(true);
  });

  test("[GST9] one that cannot be closed is told, and holds up nobody", async () => {
    const told: unknown[] = [];
    const [first, second] = [one("1"), one("2")];
    const current = new Current(first, (error) => told.push(error));
    current.swap(second, grace);
    first.fail(new Error("no"));
    second.end();
    expect(await current.close(grace)).toBe(true);
    expect(told.map(String)).toEqual(["Error: no"]);
  });

  test("[GST9] one that takes too long is left behind", async () => {
    const stuck = one("1");
    const current = new Current(stuck, () => undefined, 0);
    expect(await current.close({ runsMs: 0, callsMs: 0 })).toBe(false);
    stuck.end();
  });
});
