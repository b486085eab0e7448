import { expect, test } from "vitest";
import { CallsUnderWay } from "./calls-under-way.ts";

test("[GST9] who waits for calls has the shortest time that anybody gave them", async () => {
  const calls = new CallsUnderWay();
  const held = Promise.withResolvers<void>();
  const call = calls.during(() => held.promise);
  await Promise.all([calls.idle(3_600_000), calls.idle(1), calls.idle(3_600_000)]);
  expect(calls.count).toBe(1);
  const waiting = calls.idle(3_600_000);
  held.resolve();
  await Promise.all([waiting, call]);
  expect(calls.count).toBe(0);
});
