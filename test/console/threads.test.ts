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
  test("a complete list assigns the same threads in every order", async () => {
    const members = ["one", "two", "three"].flatMap((name) => family(name, 9));
    const threads: (readonly number[])[] = [];
    for (const listed of [members, members.toReversed()]) {
      const theme = await loadTheme();
      theme.assignThreads(listed);
      threads.push(members.map(({ sessionId }) => theme.threadOf(sessionId)));
    }
    expect(threads[1]).toEqual(threads[0]);
    expect(new Set(threads[0]).size).toBeGreaterThan(20);
  });

  test("sessions that arrive one by one have the same threads after a reload", async () => {
    // Sorted as IDs are: a parent is older than its children.
    const members = Array.from({ length: 20 }, (_, index) => ({
      sessionId: `session ${String(index).padStart(2, "0")}`,
      key: index < 2 ? `agent:${index}:main` : `agent:0:subagent:${index}`,
      ...(index < 2 ? {} : { spawnedBy: "agent:0:main" }),
    }));
    const live = await loadTheme();
    for (const member of members) live.assignThreads([member]);
    const reloaded = await loadTheme();
    reloaded.assignThreads(members.toReversed());
    for (const { sessionId } of members)
      expect([sessionId, reloaded.threadOf(sessionId)]).toEqual([sessionId, live.threadOf(sessionId)]);
  });

  test("all sessions of a family differ as long as there are free threads, and from the families before it", async () => {
    for (const name of Array.from({ length: 100 }, (_, index) => `sample ${index}`)) {
      const theme = await loadTheme();
      // A partner, a root with three children, another root, and three more children that arrive later.
      const root = { sessionId: name, key: `agent:${name}:main` };
      const first = [{ sessionId: `${name} partner`, key: "agent:support:main" }, root];
      const other = { sessionId: `${name} other`, key: "agent:main:other" };
      const children = Array.from({ length: 22 }, (_, index) => child(name, index));
      const batches = [[...first, ...children.slice(0, 3), other], children.slice(3, 6)];
      for (const batch of batches) theme.assignThreads(batch);
      const threads = () => new Set(batches.flat().map(({ sessionId }) => theme.threadOf(sessionId)));
      expect(threads().size, name).toBe(9);
      // There are 24 threads. The session after the last free one has its own hue.
      batches.push(children.slice(6, 21));
      for (const each of batches.at(-1) ?? []) theme.assignThreads([each]);
      expect(threads().size, name).toBe(24);
      theme.assignThreads(children);
      expect(theme.threadOf(`${name} child 21`)).toBeLessThan(12);
    }
  });

  test("a session keeps the hue of its ID unless two relatives have it", async () => {
    const bare = await loadTheme();
    const names = Array.from({ length: 40 }, (_, index) => `family ${index}`);
    const hues = new Map(
      names.flatMap((name) => family(name, 4)).map(({ sessionId }) => [sessionId, bare.threadOf(sessionId)]),
    );
    for (const name of names) {
      const theme = await loadTheme();
      theme.assignThreads(family(name, 4));
      const byHue = Map.groupBy(family(name, 4), ({ sessionId }) => hues.get(sessionId));
      if ([...byHue.values()].some(({ length }) => length > 2)) continue;
      for (const { sessionId } of family(name, 4))
        expect(theme.threadOf(sessionId) % 12).toBe(hues.get(sessionId));
    }
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
        expect(more).toEqual([]);
        if (other === -1) continue;
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

  test("every color keeps its hue and is clearly visible on the page in both themes", () => {
    const papers: Record<string, Color> = { light: [0.984, 0.007, 88], dark: [0.185, 0.02, 258] };
    const luminance = (color: Color) => {
      const [red, green, blue] = toRgb(color);
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
    };
    for (const [theme, colors] of Object.entries(readThreads()))
      for (const [thread, color] of colors.entries()) {
        const [, a, b] = toLab(toRgb(color));
        expect(Math.hypot(a, b), `${theme} ${thread}`).toBeGreaterThan(0.08);
        const [one, other] = [color, papers[theme] ?? color].map(luminance).sort((x, y) => y - x);
        expect((one ?? 0) / (other ?? 1), `${theme} ${thread}`).toBeGreaterThan(3);
      }
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
