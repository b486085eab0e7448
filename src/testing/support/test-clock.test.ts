import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "./temporary-folder.ts";
import { testClock } from "./test-clock.ts";

describe("test support", () => {
  test("a test clock stands still, and fires due timers in order", async () => {
    const clock = testClock(1000);
    const rung: string[] = [];
    const ring = (name: string) => () => rung.push(`${name} ${clock.now()}`);
    clock.setTimer(30, ring("late"));
    clock.setTimer(10, () => {
      ring("early")();
      clock.setTimer(5, ring("between"));
    });
    clock.setTimer(20, ring("never"))();
    clock.setTimer(31, ring("not yet"));
    expect(clock.now()).toBe(1000);
    await clock.advance(30);
    expect(rung).toEqual(["early 1010", "between 1015", "late 1030"]);
    expect([clock.now(), clock.timers]).toEqual([1030, 1]);
  });

  test("a sleep on it ends at its time, or when aborted", async () => {
    const clock = testClock();
    const stop = new AbortController();
    const [sound, light] = [clock.sleep(50), clock.sleep(50, stop.signal)];
    stop.abort(new Error("up"));
    await expect(light).rejects.toThrow("up");
    await expect(clock.sleep(1, stop.signal)).rejects.toThrow("up");
    await clock.advance(50);
    await sound;
    expect(clock.timers).toBe(0);
  });

  test("a temporary folder is empty, and is removed with its contents", () => {
    const paths: string[] = [];
    {
      using folder = temporaryFolder();
      paths.push(folder.path);
      writeFileSync(join(folder.path, "file"), "");
      using other = temporaryFolder();
      expect(other.path).not.toBe(folder.path);
    }
    expect(paths.map((path) => existsSync(path))).toEqual([false]);
  });
});
