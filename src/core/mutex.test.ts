import { expect, test } from "vitest";
import { KeyedMutex, Mutex } from "./mutex.ts";

test("[CON1] a mutex runs one after the other, in the order of asking, also past a failure", async () => {
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

test("[CON1] names do not wait for one another", async () => {
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
