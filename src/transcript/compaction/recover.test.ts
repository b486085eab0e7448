import { describe, expect, test } from "vitest";
import type { Measure, RecoveryState } from "./recover.ts";
import { afterMeasure, nextMeasure, noRecovery } from "./recover.ts";

type Cell = [
  boolean,
  RecoveryState["compaction"],
  RecoveryState["truncation"],
  RecoveryState["pruning"],
  Measure,
];

const cells: Cell[] = [
  [true, "possible", "untried", "untried", "truncate_oversized"],
  [true, "possible", "untried", "tried", "truncate_oversized"],
  [true, "possible", "tried", "untried", "truncate_oversized"],
  [true, "possible", "tried", "tried", "truncate_oversized"],
  [true, "spent", "untried", "untried", "truncate_oversized"],
  [true, "spent", "untried", "tried", "truncate_oversized"],
  [true, "spent", "tried", "untried", "truncate_oversized"],
  [true, "spent", "tried", "tried", "truncate_oversized"],
  [false, "possible", "untried", "untried", "compact"],
  [false, "possible", "untried", "tried", "compact"],
  [false, "possible", "tried", "untried", "compact"],
  [false, "possible", "tried", "tried", "compact"],
  [false, "spent", "untried", "untried", "truncate"],
  [false, "spent", "untried", "tried", "truncate"],
  [false, "spent", "tried", "untried", "prune"],
  [false, "spent", "tried", "tried", "give_up"],
];

describe("the order of measures", () => {
  test.each(cells)("oversized %s, %s, %s, %s: %s", (oversized, compaction, truncation, pruning, expected) => {
    const state = { compaction, truncation, pruning, compactions: 0, truncations: 0 };
    expect(nextMeasure(state, oversized)).toBe(expected);
  });

  const orderOf = (hasOversizedResults: boolean, shrinks: (measure: Measure) => boolean): Measure[] => {
    const taken: Measure[] = [];
    let state = noRecovery;
    for (;;) {
      const measure = nextMeasure(state, hasOversizedResults);
      if (measure === "give_up") break;
      taken.push(measure);
      state = afterMeasure(state, measure, shrinks(measure));
    }
    expect(afterMeasure(state, "give_up", false)).toBe(state);
    return taken;
  };

  test.each<[string, boolean, boolean, Measure[]]>([
    [
      "every measure helps, but never enough",
      true,
      true,
      [
        ...Array<Measure>(3).fill("truncate_oversized"),
        ...Array<Measure>(3).fill("compact"),
        "truncate",
        "prune",
      ],
    ],
    ["nothing helps", true, false, ["truncate_oversized", "compact", "truncate", "prune"]],
    ["no result is too large", false, true, ["compact", "compact", "compact", "truncate", "prune"]],
  ])("[CMP15] %s", (_, oversized, shrinks, expected) => {
    expect(orderOf(oversized, () => shrinks)).toEqual(expected);
  });
});
