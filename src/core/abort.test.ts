import { describe, expect, test, vi } from "vitest";
import { sleep, unlessAborted } from "./abort.ts";

describe("waiting", () => {
  test("[LOP12] a sleep takes its time, and ends at once with an abort, its timer with it", async () => {
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

  test("[LOP12] what comes too late is nobody's, and leaves no listener behind", async () => {
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
