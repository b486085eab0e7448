import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Soaked, SoakSample } from "../support/soak-judge.ts";
import { judgeSoak, theilSen } from "../support/soak-judge.ts";

const mebi = 1024 * 1024;

function sample(atMs: number, heapMebi: number, more: Partial<SoakSample> = {}): SoakSample {
  return { atMs, heapBytes: heapMebi * mebi, resources: 8, fds: 40, walBytes: 4 * mebi, ...more };
}

/**
 * Ninety seconds with a sample every three seconds. `heap` returns the heap size in MiB for the elapsed fraction, from
 * 0 to 1.
 */
function soaked(heap: (part: number, index: number) => number, more: Partial<Soaked> = {}): Soaked {
  const during = Array.from({ length: 30 }, (_, index) => sample(index * 3000, heap(index / 29, index)));
  return { before: sample(0, 40), during, after: sample(95_000, 40), ...more };
}

const crowd = Array.from({ length: 30 }, (_, index) => sample(index * 3000, 40, { fds: 400, resources: 90 }));

/** Fluctuates by this many MiB without repeating. */
const noise = (index: number, mebis: number) => Math.sin(index * 12.9898) * mebis;

type Row = readonly [number, number, number, number, number];

function recorded(name: string): Soaked {
  const text = readFileSync(new URL("recorded.json", import.meta.url), "utf8");
  type Kept = { readonly before: Row; readonly during: readonly Row[]; readonly after: Row };
  const { before, during, after } = (JSON.parse(text) as Record<string, Kept>)[name] as Kept;
  return { before: sampleOf(before), during: during.map(sampleOf), after: sampleOf(after) };
}

function sampleOf([atMs, heapBytes, resources, fds, walBytes]: Row): SoakSample {
  return { atMs, heapBytes, resources, fds, walBytes };
}

describe("the evaluation of a soak test", () => {
  const levels: [string, Soaked][] = [
    ["a flat heap", soaked(() => 40)],
    ["noise", soaked((_, index) => 40 + noise(index, 5))],
    ["a warm-up", soaked((part) => 40 + Math.min(part * 3, 1) * 30)],
    ["one high sample, and the last one", soaked((_, index) => (index === 20 || index === 29 ? 200 : 40))],
    ["a shrinking heap", soaked((part) => 60 - 10 * part)],
    ["many files while clients are connected", soaked(() => 40, { during: crowd })],
  ];
  test.each(levels)("accepts %s", (_, each) => {
    expect(judgeSoak(each)).toEqual([]);
  });

  const leaks: [string, Soaked, RegExp][] = [
    ["steady growth", soaked((part) => 40 + 12 * part), /heap climbed/],
    ["growth in noise", soaked((part, index) => 40 + 15 * part + noise(index, 5)), /heap climbed/],
    ["stepwise growth", soaked((part) => 40 + Math.floor(part * 4) * 6), /heap climbed/],
    ["one handle per ten visits", soaked(() => 40, { after: sample(1, 40, { resources: 20 }) }), /handles/],
    ["files left open", soaked(() => 40, { after: sample(1, 40, { fds: 43 }) }), /files/],
    ["a growing log", soaked(() => 40, { after: sample(1, 40, { walBytes: 33 * mebi }) }), /write-ahead/],
    ["too few samples", soaked(() => 40, { during: [] }), /too few/],
  ];
  test.each(leaks)("detects %s", (_, each, problem) => {
    expect(judgeSoak(each)).toEqual([expect.stringMatching(problem)]);
  });

  test("detects every leak of 1 MiB per ten seconds, even with two outliers", () => {
    const outlier = fc.record({
      at: fc.integer({ min: 10, max: 29 }),
      heap: fc.double({ min: 0, max: 500, noNaN: true }),
    });
    fc.assert(
      fc.property(
        fc.array(outlier, { maxLength: 2 }),
        fc.integer({ min: 1, max: 1000 }),
        (outliers, seed) => {
          const odd = new Map(outliers.map(({ at, heap }) => [at, heap]));
          const heap = (part: number, index: number) =>
            odd.get(index) ?? 40 + 9 * part + noise(index + seed, 0.5);
          expect(judgeSoak(soaked(heap))).toHaveLength(1);
        },
      ),
    );
  });

  /** Real samples over eighteen seconds each, in which `soak-child.ts` leaks on request. */
  test.each([
    ["level", []],
    ["events", [expect.stringMatching(/heap climbed/)]],
    ["files", [expect.stringMatching(/files are left open/)]],
  ])("classifies recorded samples of %s correctly", (name, expected) => {
    expect(judgeSoak(recorded(name))).toEqual(expected);
  });

  test("the slope of points on a line is that of the line", () => {
    const line = (slope: number) => [0, 1, 2, 5, 9].map((x) => [x, slope * x + 3] as const);
    for (const slope of [0, 2, -0.5]) expect(theilSen(line(slope))).toBeCloseTo(slope);
    expect(theilSen([...line(2), [10, 1000]])).toBeCloseTo(2);
    expect(theilSen([])).toBe(0);
  });
});
