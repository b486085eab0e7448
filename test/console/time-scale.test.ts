import { describe, expect, test } from "vitest";
import { foldWidth, splitTime, TimeScale } from "../../console/src/family/time-scale.ts";
import { entryTime, shortTime } from "../../console/src/ui/time.ts";

const hour = 3_600_000;
const busy = [
  { from: 0, to: 2000 },
  { from: 2500, to: 4000 },
  { from: 3 * hour, to: 3 * hour + 4000 },
];

describe("the time scale of the lanes", () => {
  test("folds idle time that is long against the busy time, and no other", () => {
    const stretches = splitTime(busy, new Set());
    expect(stretches.map(({ from, to, isFold }) => [from, to, isFold])).toEqual([
      [0, 4000, false],
      [4000, 3 * hour, true],
      [3 * hour, 3 * hour + 4000, false],
    ]);
  });

  test("shows an unfolded idle time at its whole length", () => {
    const stretches = splitTime(busy, new Set([4000]));
    expect(stretches).toMatchObject([{ from: 0, to: 3 * hour + 4000, isFold: false }]);
  });

  test("fits everything into the width, with folds of fixed width", () => {
    const scale = new TimeScale(splitTime(busy, new Set()), 800, 1);
    expect(scale.width).toBeCloseTo(800, 3);
    expect(scale.pieces[1]?.width).toBe(foldWidth);
  });

  test("is narrower below zoom 1, without times that have no room", () => {
    const periods = Array.from({ length: 12 }, (_, index) => ({ from: index * hour, to: index * hour + 10 }));
    const stretches = splitTime(periods, new Set());
    const { width } = new TimeScale(stretches, 360, 1);
    expect(width).toBeGreaterThan(360);
    const scale = new TimeScale(stretches, 360, 360 / width);
    expect(scale.width).toBeCloseTo(360, 3);
    expect(scale.ticks(0, 360)).toEqual([]);
    const places = periods.flatMap(({ from, to }) => [scale.xOf(from), scale.xOf(to)]);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });

  test("never goes back in time from left to right, and finds the time at a place", () => {
    const scale = new TimeScale(splitTime(busy, new Set()), 500, 3);
    const times = [0, 700, 2000, 2600, 4000, hour, 3 * hour, 3 * hour + 3999];
    const places = times.map((at) => scale.xOf(at));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    for (const at of times) expect(scale.timeAt(scale.xOf(at))).toBeCloseTo(at, 3);
  });

  test("has the label of a fold in its middle, also after a period of a single moment", () => {
    const moments = [0, hour].map((at) => ({ from: at, to: at }));
    const scale = new TimeScale(splitTime(moments, new Set()), 800, 1);
    const fold = scale.pieces[1];
    expect(fold?.isFold).toBe(true);
    expect(scale.middleOf({ from: 0, to: hour })).toBe((fold?.x ?? 0) + foldWidth / 2);
    const unfolded = new TimeScale(splitTime(moments, new Set([0])), 800, 1);
    expect(unfolded.middleOf({ from: 0, to: hour })).toBeCloseTo(400, 3);
  });

  test("leaves room for a date above each period", () => {
    const periods = Array.from({ length: 12 }, (_, index) => ({ from: index * hour, to: index * hour + 10 }));
    const scale = new TimeScale(splitTime(periods, new Set()), 800, 1);
    const starts = scale.ticks(0, scale.width).filter(({ isStart }) => isStart);
    expect(starts.length).toBe(12);
    const ends = scale.pieces.filter(({ isFold }) => !isFold).map(({ x, width }) => x + width);
    for (const [index, { x }] of starts.entries()) expect((ends[index] ?? 0) - x).toBeGreaterThan(100);
  });
});

describe("the time of a row", () => {
  const evening = new Date(2026, 10, 17, 23, 5).getTime();
  const clock = shortTime(evening, evening);

  test("is the clock time on the same day and during the night after it", () => {
    expect(clock).toContain(":05");
    expect(shortTime(evening, evening + hour)).toBe(clock);
    expect(shortTime(evening, evening + 13 * hour)).not.toContain(":05");
    // A token that expires tonight differs from one that expires tomorrow morning.
    expect(shortTime(evening + 8 * hour, evening)).not.toContain(":05");
  });

  test("of an entry has the day as well for a week", () => {
    expect(entryTime(evening, evening)).toBe(clock);
    for (const hours of [1, 24, 160]) {
      expect(entryTime(evening, evening + hours * hour)).toContain("17");
      expect(entryTime(evening, evening + hours * hour)).toContain(":05");
    }
    expect(entryTime(evening, evening + 170 * hour)).not.toContain(":05");
  });
});
