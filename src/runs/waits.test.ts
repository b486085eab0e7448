import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findCycle } from "./waits.ts";

const graph = (edges: Record<string, readonly string[]>) => (runId: string) => edges[runId] ?? [];

describe("circles of waits", () => {
  test("[RUN11] a wait that leads back to itself is found, with the way", () => {
    expect(findCycle("a", ["b"], graph({ b: ["c"], c: ["a"] }))).toEqual(["a", "b", "c", "a"]);
    expect(findCycle("a", ["a"], graph({}))).toEqual(["a", "a"]);
    expect(findCycle("a", ["b", "c"], graph({ b: ["d"], c: ["d"], d: [] }))).toBe(null);
    expect(findCycle("a", ["b"], graph({ b: ["c"], c: ["b"] }))).toBe(null);
  });

  test("[RUN11] found exactly where one can be walked", () => {
    const node = fc.constantFrom("a", "b", "c", "d", "e");
    fc.assert(
      fc.property(fc.array(fc.tuple(node, node), { maxLength: 10 }), fc.array(node), (pairs, targets) => {
        const next = (runId: string) => pairs.filter(([from]) => from === runId).map(([, to]) => to);
        const reached = new Set(targets);
        for (let size = -1; size !== reached.size; ) {
          size = reached.size;
          for (const each of [...reached]) for (const to of next(each)) reached.add(to);
        }
        const cycle = findCycle("a", targets, next);
        expect(cycle !== null).toBe(reached.has("a"));
        if (cycle === null) return;
        expect(cycle[0]).toBe("a");
        expect(cycle.at(-1)).toBe("a");
        expect(targets).toContain(cycle[1]);
        for (const [at, each] of cycle.entries()) {
          if (at > 1) expect(next(cycle[at - 1] ?? "")).toContain(each);
        }
      }),
    );
  });
});
