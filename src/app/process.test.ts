import { expect, test } from "vitest";
import { createTakeOverCheck } from "./process.ts";

test("after a suspend, the owners of runs have one lease to renew it before others can take over", () => {
  let wall = 1_000_000;
  let monotonic = 0;
  const pass = (ms: number) => {
    wall += ms;
    monotonic += ms;
  };
  const canTakeOver = createTakeOverCheck(
    30_000,
    () => wall,
    () => monotonic,
  );
  pass(3_600_000);
  expect(canTakeOver()).toBe(true);
  wall += 300_000;
  expect(canTakeOver()).toBe(false);
  pass(29_999);
  expect(canTakeOver()).toBe(false);
  pass(1);
  expect(canTakeOver()).toBe(true);
  wall -= 300_000;
  expect(canTakeOver()).toBe(true);
});
