import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { systemClock } from "../core/clock.ts";
import type { SkeinEvent } from "../core/events.ts";
import { EventBus } from "../core/events.ts";
import type { Run } from "../runs/contract.ts";
import { RunWatcher, waitForRun } from "./run-watcher.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Runs that stay open until the test ends them. Counts how often they are read. */
function watched(options: { readonly version?: () => number } = {}) {
  const bus = new EventBus();
  const ended = new Set<string>();
  const counts = { looks: 0, listeners: 0 };
  const subscribe = bus.subscribe.bind(bus);
  bus.subscribe = (listener) => {
    counts.listeners += 1;
    const leave = subscribe(listener);
    return () => {
      counts.listeners -= 1;
      leave();
    };
  };
  const get = async (runId: string) => {
    counts.looks += 1;
    return { runId, outcome: ended.has(runId) ? { state: "ok" } : null } as Run;
  };
  let writes = 0;
  const version = () => ++writes;
  const store = { get, approval: async () => null, list: async () => [], version, ...options };
  const watcher = new RunWatcher(store, bus, systemClock);
  const end = (runId: string, isTold = true) => {
    ended.add(runId);
    if (isTold) bus.emit({ type: "run.ended", runId } as SkeinEvent);
  };
  return { watcher, counts, end };
}

describe("waiting for a run", () => {
  test("an end, a timeout and an aborted wait leave no timer or listener", async () => {
    const { watcher, counts, end } = watched();
    const leaving = new AbortController();
    const { signal } = leaving;
    const inTime = waitForRun(watcher, "a", { timeoutMs: 1000, signal });
    const late = waitForRun(watcher, "b", { timeoutMs: 1000, signal });
    const left = waitForRun(watcher, "c", { timeoutMs: 600_000, signal });
    const patient = waitForRun(watcher, "d", {});
    end("a");
    expect(await inTime).toMatchObject({ runId: "a" });
    await vi.advanceTimersByTimeAsync(1000);
    expect(await late).toBeNull();
    leaving.abort();
    expect(await left).toBeNull();
    end("d");
    expect(await patient).toMatchObject({ runId: "d" });
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    expect([watcher.size, counts.listeners]).toEqual([0, 0]);
    expect(await waitForRun(watcher, "e", { timeoutMs: 1000, signal })).toBeNull();
    expect(await waitForRun(watcher, "e", { timeoutMs: 0 })).toBeNull();
  });

  test("a thousand waits share one timer and one subscription, and polling is limited", async () => {
    const { watcher, counts, end } = watched({ version: () => 1 });
    const waits = Array.from({ length: 1000 }, (_, index) => watcher.untilEnded(`r${index}`));
    expect([vi.getTimerCount(), counts.listeners]).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(250);
    counts.looks = 0;
    // The first poll cannot determine whether anything has changed, so all waits are checked, 64 at a time.
    await vi.advanceTimersByTimeAsync(15 * 250);
    expect(counts.looks).toBeLessThanOrEqual(15 * 64);
    counts.looks = 0;
    await vi.advanceTimersByTimeAsync(1000);
    expect(counts.looks).toBe(4 * 8);
    end("r7");
    await vi.advanceTimersByTimeAsync(0);
    expect(await waits[7]).toMatchObject({ runId: "r7" });
    expect(watcher.size).toBe(999);
    for (let index = 0; index < 1000; index += 1) end(`r${index}`);
    await Promise.all(waits);
    expect([watcher.size, vi.getTimerCount(), counts.listeners]).toEqual([0, 0, 0]);
  });

  test("a run ended by another process is found by polling, each in its turn", async () => {
    let version = 1;
    const { watcher, end } = watched({ version: () => version });
    const waits = Array.from({ length: 200 }, (_, index) => watcher.untilEnded(`r${index}`));
    await vi.advanceTimersByTimeAsync(5 * 250);
    for (let index = 0; index < 200; index += 1) end(`r${index}`, false);
    version += 1;
    await vi.advanceTimersByTimeAsync(4 * 250);
    expect(watcher.size).toBe(0);
    await Promise.all(waits);
    const silent = watcher.untilEnded("x");
    end("x", false);
    await vi.advanceTimersByTimeAsync(250);
    expect(await silent).toMatchObject({ runId: "x" });
  });
});
