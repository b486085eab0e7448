import { describe, expect, test } from "vitest";
import type { Measure, RecoveryState } from "./recover.ts";
import { afterMeasure, nextMeasure, recoveryFor } from "./recover.ts";

type Cell = [
  RecoveryState["oversized"],
  RecoveryState["compaction"],
  RecoveryState["truncation"],
  RecoveryState["pruning"],
  Measure,
];

const cells: Cell[] = [
  ["waiting", "possible", "untried", "untried", "truncate_oversized"],
  ["waiting", "possible", "untried", "tried", "truncate_oversized"],
  ["waiting", "possible", "tried", "untried", "truncate_oversized"],
  ["waiting", "possible", "tried", "tried", "truncate_oversized"],
  ["waiting", "spent", "untried", "untried", "truncate_oversized"],
  ["waiting", "spent", "untried", "tried", "truncate_oversized"],
  ["waiting", "spent", "tried", "untried", "truncate_oversized"],
  ["waiting", "spent", "tried", "tried", "truncate_oversized"],
  ["settled", "possible", "untried", "untried", "compact"],
  ["settled", "possible", "untried", "tried", "compact"],
  ["settled", "possible", "tried", "untried", "compact"],
  ["settled", "possible", "tried", "tried", "compact"],
  ["settled", "spent", "untried", "untried", "truncate"],
  ["settled", "spent", "untried", "tried", "truncate"],
  ["settled", "spent", "tried", "untried", "prune"],
  ["settled", "spent", "tried", "tried", "give_up"],
];

describe("the order of measures", () => {
  test.each(cells)("[CMP14] %s, %s, %s, %s: %s", (oversized, compaction, truncation, pruning, expected) => {
    expect(nextMeasure({ oversized, compaction, truncation, pruning, compactions: 0 })).toBe(expected);
  });

  const orderOf = (hasOversizedResults: boolean, shrinks: (measure: Measure) => boolean): Measure[] => {
    const taken: Measure[] = [];
    let state = recoveryFor({ hasOversizedResults });
    for (let measure = nextMeasure(state); measure !== "give_up"; measure = nextMeasure(state)) {
      taken.push(measure);
      state = afterMeasure(state, measure, shrinks(measure));
    }
    expect(afterMeasure(state, "give_up", false)).toBe(state);
    return taken;
  };

  test.each<[string, boolean, boolean, Measure[]]>([
    [
      "all of it helps, and never enough",
      true,
      true,
      ["truncate_oversized", "compact", "compact", "compact", "truncate", "prune"],
    ],
    ["nothing helps", true, false, ["truncate_oversized", "compact", "truncate", "prune"]],
    ["no result is too large", false, true, ["compact", "compact", "compact", "truncate", "prune"]],
  ])("[CMP14] [CMP15] %s", (_, oversized, shrinks, expected) => {
    expect(orderOf(oversized, () => shrinks)).toEqual(expected);
  });
});
