import { expect, test } from "vitest";
import type { HeldRun } from "../runs/contract.ts";
import { PartialKeeper } from "./run-writer.ts";

test("keeps the beginning of an endless answer until it is written", async () => {
  const kept: (string | null)[] = [];
  let now = 0;
  const runs = { savePartial: async (_: HeldRun, text: string | null) => void kept.push(text) };
  const deps = { runs, clock: { now: () => now }, report: () => undefined };
  const keeper = new PartialKeeper(deps as never, {} as HeldRun);
  for (let turn = 0; turn < 100; turn++) {
    now += 2000;
    keeper.take({ type: "delta", kind: "text", delta: "x".repeat(10_000) });
  }
  expect(kept).toHaveLength(40);
  await keeper.leave();
  expect(kept.at(-1)).toHaveLength(400_000);
  await keeper.settle();
  now += 2000;
  keeper.take({ type: "delta", kind: "text", delta: "anew" });
  expect(kept.at(-1)).toBe("anew");
});
