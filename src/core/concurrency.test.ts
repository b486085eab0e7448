import { describe, expect, test, vi } from "vitest";
import { KeyedMutex, Mutex, sleep, unlessAborted, within } from "./concurrency.ts";

test("a mutex runs tasks one at a time in order, even after a failure", async () => {
  const mutex = new Mutex();
  const seen: string[] = [];
  const act = (name: string, fails = false) =>
    mutex.run(async () => {
      seen.push(`${name} in`);
      await Promise.resolve();
      seen.push(`${name} out`);
      if (fails) throw new Error(name);
      return name;
    });
  const results = await Promise.allSettled([act("a"), act("b", true), act("c")]);
  expect(results.map((each) => each.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(seen).toEqual(["a in", "a out", "b in", "b out", "c in", "c out"]);
});

test("different names do not wait for one another", async () => {
  const queues = new KeyedMutex();
  let release: () => void = () => undefined;
  const held = queues.run(
    "x",
    () =>
      new Promise<void>((resolve) => {
        release = resolve;
      }),
  );
  expect(await queues.run("y", async () => "through")).toBe("through");
  const second = queues.run("x", async () => "after");
  release();
  await held;
  expect(await second).toBe("after");
});

describe("work with a timeout", () => {
  test("a result in time is returned, a failure is thrown, and slow work is abandoned", async () => {
    expect(await within(60_000, Promise.resolve("done"))).toBe(true);
    await expect(within(60_000, Promise.reject(new Error("no")))).rejects.toThrow("no");
    const { promise, reject } = Promise.withResolvers<void>();
    expect(await within(0, promise)).toBe(false);
    // Nothing is waiting for this promise anymore, so the rejection is harmless.
    reject(new Error("too late"));
  });
});

describe("waiting", () => {
  test("[LIB11] a sleep lasts its time, and ends at once on an abort, with its timer", async () => {
    vi.useFakeTimers();
    try {
      const stop = new AbortController();
      const slept = sleep(5000, stop.signal);
      await vi.advanceTimersByTimeAsync(5000);
      await expect(slept).resolves.toBeUndefined();
      const cut = sleep(5000, stop.signal);
      stop.abort(new Error("enough"));
      await expect(cut).rejects.toThrow("enough");
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("[LIB11] a late result is ignored, and leaves no listener behind", async () => {
    const stop = new AbortController();
    const { signal } = stop;
    const removed = vi.spyOn(signal, "removeEventListener");
    await expect(unlessAborted(Promise.resolve(1), signal)).resolves.toBe(1);
    await expect(unlessAborted(Promise.reject(new Error("own")), signal)).rejects.toThrow("own");
    expect(removed).toHaveBeenCalledTimes(2);
    stop.abort("enough");
    await expect(unlessAborted(Promise.reject(new Error("late")), signal)).rejects.toBe("enough");
  });
});
