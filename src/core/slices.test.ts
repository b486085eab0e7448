import { setImmediate } from "node:timers";
import { describe, expect, test, vi } from "vitest";
import { parsingSession } from "./parse-session.ts";
import type { Steps } from "./slices.ts";
import { atOnce, Slices, sliceBytes } from "./slices.ts";

/** Performs work with this many steps, each of which fills a slice. Calls `note` after each step. */
function* work(steps: number, note: (step: number) => void = () => undefined): Steps<number> {
  for (let step = 0; step < steps; step++) {
    note(step);
    yield sliceBytes;
  }
  return steps;
}

/** Counts the event loop turns until something is done. */
async function turnsDuring(act: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await act();
  isOver = true;
  return turns;
}

describe("long work in slices", () => {
  test("the event loop gets a turn after every slice, and the result is returned", async () => {
    let result = 0;
    const turns = await turnsDuring(async () => {
      result = await new Slices().run(work(40));
    });
    expect(result).toBe(40);
    expect(turns).toBeGreaterThanOrEqual(40);
  });

  test("short work takes no extra turn", async () => {
    let isTurn = false;
    setImmediate(() => {
      isTurn = true;
    });
    function* short(): Steps<string> {
      yield 1;
      return "done";
    }
    expect(await new Slices().run(short())).toBe("done");
    expect(isTurn).toBe(false);
  });

  test("of several tasks, one runs a slice per turn, in order", async () => {
    const done: string[] = [];
    const inTurn: number[] = [];
    let steps = 0;
    const many = Array.from({ length: 5 }, (_, index) =>
      new Slices().run(
        work(6, (step) => {
          done.push(`${step}.${index}`);
          steps++;
        }),
      ),
    );
    // The first step of each piece of work runs before any of them waits.
    steps = 0;
    const turns = await turnsDuring(async () => {
      const watch = () => {
        inTurn.push(steps);
        steps = 0;
        if (done.length < 30) setImmediate(watch);
      };
      setImmediate(watch);
      await Promise.all(many);
    });
    expect(done).toEqual(done.toSorted());
    expect(Math.max(...inTurn)).toBeLessThanOrEqual(1);
    expect(turns).toBeGreaterThanOrEqual(25);
  });

  test("work under a lock also yields after every slice, and waits for no other work", async () => {
    let others = 0;
    let isOver = false;
    const many = Array.from({ length: 50 }, () =>
      new Slices().run(
        (function* () {
          for (; !isOver; others++) yield sliceBytes;
        })(),
      ),
    );
    const turns = await turnsDuring(async () => {
      others = 0;
      await Slices.underLock().run(work(10));
      isOver = true;
    });
    const meanwhile = others;
    await Promise.all(many);
    expect(turns).toBeGreaterThanOrEqual(10);
    expect(meanwhile).toBeLessThanOrEqual(11);
  });

  test("an abort ends the work at the next turn", async () => {
    const controller = new AbortController();
    let steps = 0;
    const running = new Slices(controller.signal).run(
      work(1000, (step) => {
        steps = step;
        if (step === 3) controller.abort(new Error("gone"));
      }),
    );
    await expect(running).rejects.toThrow("gone");
    expect(steps).toBe(3);
  });

  test("yields without setImmediate, as in a browser", async () => {
    let result = 0;
    const turns = await turnsDuring(async () => {
      vi.stubGlobal("setImmediate", undefined);
      result = await new Slices().run(work(40)).finally(() => vi.unstubAllGlobals());
    });
    expect(result).toBe(40);
    expect(turns).toBeGreaterThanOrEqual(20);
  });

  test("runs without yielding when asked to", () => {
    expect(atOnce(work(1000))).toBe(1000);
  });

  test("short lines of a session share a step", () => {
    const line = `{"type":"label","id":"a","parentId":null,"timestamp":"","targetId":"b"}\n`;
    const sizes = [...parsingSession(line.repeat(10_000))];
    expect(sizes.length).toBeLessThan(line.length);
    expect(sizes.every((size) => size < sliceBytes)).toBe(true);
  });
});
