import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { pages, renderAllRows, renderFirstPage, renderPlots, withGenerated } from "../../bench/report.ts";
import type { RowResult } from "../../bench/results.ts";
import { figureOf, readResults } from "../../bench/results.ts";
import { rows } from "../../bench/rows/all.ts";
import { sides } from "../../bench/sides.ts";
import { judge } from "../../bench/target.ts";
import { targets } from "../../bench/targets/all.ts";
import { root } from "./source.ts";

const read = (path: string) => readFileSync(join(root, path), "utf8");

describe("the benchmark page", () => {
  const results = readResults();

  test("the pages and their plots match the results", () => {
    for (const [name, render] of Object.entries(pages)) {
      const page = read(`docs/${name}`);
      expect(withGenerated(page, render(results))).toBe(page);
    }
    for (const [name, svg] of Object.entries(renderPlots(results)))
      expect(read(`docs/benchmarks/${name}`)).toBe(svg);
  });

  test("every row has results, and no result belongs to a removed row", () => {
    expect(results.map(({ row }) => row).toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
  });

  test("the first page has twenty rows and four plots", () => {
    const page = renderFirstPage(results);
    expect(page.match(/^\| /gm)).toHaveLength(1 + 20);
    expect(page.match(/^!\[/gm)).toHaveLength(4);
  });

  test("every target names a measured value, unless its row failed", () => {
    const missing = targets.filter(({ us }) => {
      const { points = [], problem } = results.find(({ row }) => row === us.row) ?? {};
      if (problem !== undefined) return false;
      const point = points.find((each) => each.case === us.case && each.side === us.side);
      return point?.figures[us.figure] === undefined;
    });
    expect(missing.map(({ what }) => what)).toEqual([]);
  });

  test("the text around the generated part stays unchanged", () => {
    const page = read("docs/benchmarks-all.md");
    const remarks = page.slice(page.indexOf("## Remarks"));
    const other = withGenerated(page, "nothing");
    expect(other.startsWith(page.slice(0, page.indexOf("<!-- generated from")))).toBe(true);
    expect(other.endsWith(remarks)).toBe(true);
    expect(withGenerated(other, "nothing")).toBe(other);
    expect(() => withGenerated("no marks", "nothing")).toThrow("markers");
  });
});

describe("benchmark reports", () => {
  test("contain medians with their spread", () => {
    expect(figureOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3, runs: 3 });
    expect(figureOf([4, 1, 2, 3])).toEqual({ median: 2.5, min: 1, max: 4, runs: 4 });
    expect(figureOf([123.456789])).toEqual({ median: 123.5, min: 123.5, max: 123.5, runs: 1 });
  });

  test.each([
    [{ kind: "faster", times: 10 }, 2, 40, { ratio: 20, missedBy: 0.5 }],
    [{ kind: "faster", times: 10 }, 8, 40, { ratio: 5, missedBy: 2 }],
    [{ kind: "more", times: 1 }, 50, 100, { ratio: 0.5, missedBy: 2 }],
    [{ kind: "within", times: 1.5 }, 3, 1, { ratio: 3, missedBy: 2 }],
    [{ kind: "at most", value: 5 }, 10, null, { ratio: null, missedBy: 2 }],
    [{ kind: "at least", value: 0.75 }, 0.5, 0.25, { ratio: 2, missedBy: 1.5 }],
    [{ kind: "at least", value: 0.75 }, 0.8, null, { ratio: null, missedBy: 0 }],
    [{ kind: "above", by: 0.25 }, 0.5, 0.5, { ratio: 1, missedBy: 1.5 }],
    [{ kind: "above", by: -0.25 }, 0.5, 0.5, { ratio: 1, missedBy: 0.5 }],
    [{ kind: "faster", times: 1 }, 10, null, { ratio: null, missedBy: null }],
    [{ kind: "shown", as: "faster" }, 10, 5, { ratio: 0.5, missedBy: null }],
    [{ kind: "shown", as: "more" }, 10, 5, { ratio: 2, missedBy: null }],
  ] as const)("%o of %d against %d", (goal, us, other, expected) => {
    expect(judge(goal, us, other)).toEqual(expected);
  });

  test("a missed target and an omitted peer are reported", () => {
    const point = (side: string, ms: number) => ({
      case: "5,000",
      size: 5000,
      side,
      figures: { ms: figureOf([ms]) },
    });
    const result: RowResult = {
      row: "load",
      measuredAt: "2026-11-15T00:00:00.000Z",
      machine: "a machine",
      commit: "abc",
      load: 0.5,
      isQuick: true,
      versions: { "@mariozechner/pi-coding-agent": "0.58.3" },
      points: [point("skein (full)", 120), point("pi", 60)],
      leftOut: [{ side: "Google ADK", act: "load", reason: "no driver" }],
    };
    const page = renderAllRows([result]);
    expect(page).toContain("a machine; commit `abc`, 2026-11-15, quick: sizes / 20");
    expect(page).toContain(
      "| load 5,000 messages | 120 ms | – | – | ≤ 40 ms | **missed** by 3 ×, [why](benchmarks-all.md#remarks) |",
    );
    expect(page).toContain("| load 5,000 messages | 120 ms | pi 60 ms | 0.5 × | – |  |");
    expect(page).toContain("Google ADK could not load: no driver");
    expect(page).toContain("`@mariozechner/pi-coding-agent` 0.58.3");
    expect(renderFirstPage([result])).toContain(
      "| load 5,000 messages | 120 ms | pi 60 ms | 0.5 × | ≤ 40 ms | **missed** by 3 ×, [why](benchmarks-all.md#remarks) |",
    );
  });

  test("a row that failed or began on a busy machine is reported", () => {
    const about = {
      measuredAt: "2026-11-15T00:00:00.000Z",
      machine: "a machine",
      commit: "abc",
      isQuick: false,
      versions: {},
      points: [],
      leftOut: [],
    };
    const page = renderAllRows([
      { ...about, row: "load", load: 0.5, problem: "the disk is full" },
      { ...about, row: "fork", load: 2.5, waitedSeconds: 600 },
    ]);
    expect(page).toContain("This row could not be measured: the disk is full");
    expect(page).toContain("These began at a load average of 2 or more: fork.");
  });
});

describe("the peers", () => {
  const manifest = JSON.parse(read("bench/package.json")) as { dependencies: Record<string, string> };
  const lock = JSON.parse(read("bench/package-lock.json")) as {
    packages: Record<string, { version?: string; integrity?: string }>;
  };

  test("are packages of the benchmark only, pinned and locked, from no named host", () => {
    const own = JSON.parse(read("package.json")) as Record<string, Record<string, string>>;
    const shared = Object.keys({ ...own.dependencies, ...own.devDependencies });
    /** The types of an adapter need it, too. */
    const ofAdapters = ["@langchain/core"];
    for (const [name, version] of Object.entries(manifest.dependencies)) {
      if (!ofAdapters.includes(name)) expect(shared).not.toContain(name);
      expect(lock.packages[`node_modules/${name}`]?.version).toBe(version);
    }
    const loose = Object.entries(lock.packages).filter(([, each]) => !each.version || !each.integrity);
    expect(loose.map(([place]) => place)).toEqual([""]);
    expect(read("bench/package-lock.json")).not.toMatch(/"resolved"|https?:\/\/[^"]*registry/);
  });

  test("every side has a module, and its packages are in the lock file", () => {
    for (const { module, packages } of Object.values(sides)) {
      expect(existsSync(join(root, "bench", `${module}.ts`))).toBe(true);
      for (const name of packages) expect(lock.packages[`node_modules/${name}`]).toBeDefined();
    }
  });
});
