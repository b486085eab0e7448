import { readFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { assignThreads, threadOf } from "../../console/src/ui/theme.ts";

type Color = readonly [number, number, number];

/** How people without one of the three kinds of cones see a linear RGB color (Machado et al. 2009). */
const visions: Record<string, readonly Color[]> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritan: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};
const multiply = (rows: readonly Color[], [x, y, z]: Color): Color =>
  rows.map((row) => row[0] * x + row[1] * y + row[2] * z) as unknown as Color;
const each = ([x, y, z]: Color, change: (value: number) => number): Color => [
  change(x),
  change(y),
  change(z),
];
const clamp = (color: Color) => each(color, (value) => Math.min(1, Math.max(0, value)));

/** OKLCH to linear RGB, and linear RGB to OKLab (Ottosson 2020). */
function toRgb([lightness, chroma, hue]: Color): Color {
  const angle = (hue * Math.PI) / 180;
  const cones = multiply(
    [
      [1, 0.3963377774, 0.2158037573],
      [1, -0.1055613458, -0.0638541728],
      [1, -0.0894841775, -1.291485548],
    ],
    [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)],
  );
  return clamp(
    multiply(
      [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.707614701],
      ],
      each(cones, (value) => value ** 3),
    ),
  );
}

function toLab(rgb: Color): Color {
  const cones = multiply(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    rgb,
  );
  return multiply(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    each(cones, Math.cbrt),
  );
}

/** The color of each thread in the style sheet, by theme. */
function readThreads(): Record<"light" | "dark", readonly Color[]> {
  const css = readFileSync(new URL("../../console/src/ui/theme.css", import.meta.url), "utf8");
  const hues = [...css.matchAll(/--thread-hue: (\d+);/g)].map(([, hue]) => Number(hue));
  const looks = [
    ...css.matchAll(/--thread: light-dark\(oklch\(([\d.]+) ([\d.]+) .*?oklch\(([\d.]+) ([\d.]+) /g),
  ];
  const colors = (at: number) =>
    Array.from({ length: 24 }, (_, thread): Color => {
      // Even hues have the second look, and from 12 on the first one.
      const look = looks[(thread + 1 + Number(thread >= 12)) % 2] ?? [];
      return [Number(look[at]), Number(look[at + 1]), hues[thread % 12] ?? 0];
    });
  return { light: colors(1), dark: colors(3) };
}

function difference(a: Color, b: Color, vision: readonly Color[]): number {
  const [one, other] = [a, b].map((color) => toLab(clamp(multiply(vision, toRgb(color))))) as [Color, Color];
  return Math.hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]);
}

/** The module as a page loads it, without any colors assigned. */
function loadTheme(): Promise<typeof import("../../console/src/ui/theme.ts")> {
  vi.resetModules();
  return import("../../console/src/ui/theme.ts");
}

const child = (parent: string, index: number) => ({
  sessionId: `${parent} child ${index}`,
  key: `agent:${parent}:subagent:${index}`,
  spawnedBy: `agent:${parent}:main`,
});
const family = (name: string, count: number) => [
  ...Array.from({ length: count }, (_, index) => child(name, index)),
  { sessionId: name, key: `agent:${name}:main` },
];

describe("the colors of sessions", () => {
  test("a session has the same hue in every list, in every order, and where no list names it", async () => {
    const members = ["one", "two", "three"].flatMap((name) => family(name, 9));
    const loads = [[], members, members.toReversed(), members.filter((_, index) => index % 3 === 0)];
    const hues: (readonly number[])[] = [];
    for (const listed of loads) {
      const theme = await loadTheme();
      theme.assignThreads(listed);
      hues.push(members.map(({ sessionId }) => theme.threadOf(sessionId) % 12));
    }
    for (const each of hues) expect(each).toEqual(hues[0]);
    expect(new Set(hues[0]).size).toBeGreaterThan(8);
  });

  test("two sessions of a family with the same hue have different lightness, also for people who see fewer colors", () => {
    const themes = Object.entries(readThreads());
    let pairs = 0;
    for (const name of Array.from({ length: 40 }, (_, index) => `family ${index}`)) {
      const members = family(name, 4);
      assignThreads(members.toReversed());
      const byHue = Map.groupBy(
        members.map(({ sessionId }) => threadOf(sessionId)),
        (thread) => thread % 12,
      );
      for (const [one = -1, other = -1, ...more] of byHue.values()) {
        if (other === -1 || more.length > 0) continue;
        pairs += 1;
        for (const [theme, colors] of themes)
          for (const [vision, rows] of Object.entries(visions)) {
            const [first, second] = [colors[one], colors[other]];
            if (first === undefined || second === undefined) throw new Error("A thread has no color.");
            expect(difference(first, second, rows), `${theme} ${vision}`).toBeGreaterThan(0.07);
          }
      }
    }
    expect(pairs).toBeGreaterThan(10);
  });

  test("neighboring hues differ clearly in both themes, also for people who see fewer colors", () => {
    for (const [theme, colors] of Object.entries(readThreads()))
      for (const [index, color] of colors.slice(0, 12).entries())
        for (const [vision, rows] of Object.entries(visions)) {
          const next = colors[(index + 1) % 12] ?? color;
          expect(difference(color, next, rows), `${theme} ${vision} ${index}`).toBeGreaterThan(0.07);
        }
  });

  test("a color stays when siblings arrive or another list names the session", () => {
    const [first, second, third, parent] = family("steady", 3);
    if (first === undefined || second === undefined || third === undefined || parent === undefined) return;
    assignThreads([parent, third]);
    const before = threadOf(third.sessionId);
    assignThreads([first, second, third]);
    assignThreads([{ sessionId: third.sessionId, key: third.key }]);
    expect(threadOf(third.sessionId)).toBe(before);
  });

  test("a session that spawned itself has a color", () => {
    assignThreads([{ sessionId: "loop", key: "agent:loop:main", spawnedBy: "agent:loop:main" }]);
    expect(threadOf("loop")).toBeLessThan(24);
  });
});
