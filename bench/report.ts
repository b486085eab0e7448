import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { curves } from "./curves.ts";
import type { Series } from "./plot.ts";
import { plot } from "./plot.ts";
import { digits, figureName, formatFigure, formatValue, table } from "./render.ts";
import type { Figure, RowResult } from "./results.ts";
import { readResults } from "./results.ts";
import { rows } from "./rows/all.ts";
import type { Side } from "./sides.ts";
import { sides } from "./sides.ts";
import type { Goal, Place, Target } from "./targets.ts";
import { judge, targets } from "./targets.ts";

/** Generates the page from the results, deterministically. Text outside the markers is written by hand. */

const begin = "<!-- generated from bench/results by npm run bench: begin -->";
const end = "<!-- generated: end -->";
export const docsFolder = fileURLToPath(new URL("../docs/", import.meta.url));

export function writeReport(): void {
  const results = readResults();
  const path = join(docsFolder, "benchmarks.md");
  const page = existsSync(path) ? readFileSync(path, "utf8") : `# Benchmarks\n\n${begin}\n${end}\n`;
  writeFileSync(path, withGenerated(page, renderPage(results)));
  mkdirSync(join(docsFolder, "benchmarks"), { recursive: true });
  for (const [name, svg] of Object.entries(renderPlots(results)))
    writeFileSync(join(docsFolder, "benchmarks", name), svg);
  console.log("written: bench/results, docs/benchmarks.md, docs/benchmarks/*.svg");
}

/** Returns the page with its generated part replaced. */
export function withGenerated(page: string, generated: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to < from) throw new Error("docs/benchmarks.md has lost its markers; restore them");
  return `${page.slice(0, from + begin.length)}\n\n${generated}\n\n${page.slice(to)}`;
}

export function renderPage(results: readonly RowResult[]): string {
  const parts = [
    measuredWhere(results),
    targetTable(results),
    ...rows.flatMap((row) => {
      const result = results.find((each) => each.row === row.name);
      return result === undefined ? [] : [`### ${row.title}`, ...plotsOf(row.name), details(result)];
    }),
    "### Measured systems",
    whoTable(results),
  ];
  return parts.join("\n\n");
}

/** The machine and commit, printed once if they are the same for all rows. */
function measuredWhere(results: readonly RowResult[]): string {
  const groups = Map.groupBy(results, ({ machine, commit, measuredAt, isQuick }) => {
    const quick = isQuick ? ", quick: sizes / 20" : "";
    return `${machine}; commit \`${commit}\`, ${measuredAt.slice(0, 10)}${quick}`;
  });
  return [...groups]
    .map(([where, some]) => {
      const named = groups.size === 1 ? "Measured on" : `${some.map(({ row }) => row).join(", ")}: on`;
      const loads = some.map(({ load }) => load);
      const [least, most] = [Math.min(...loads), Math.max(...loads)];
      return `${named} ${where}. Load average before each row: ${least} – ${most}.`;
    })
    .join("\n");
}

function valueAt(results: readonly RowResult[], place: Place): number | null {
  const points = results.find(({ row }) => row === place.row)?.points ?? [];
  const point = points.find((each) => each.case === place.case && each.side === place.side);
  return point?.figures[place.figure]?.median ?? null;
}

function targetTable(results: readonly RowResult[]): string {
  const lines = targets.flatMap((target) => {
    const line = targetLine(results, target);
    return line === null ? [] : [line];
  });
  return table(["what", "us", "against", "ratio", "must reach", ""], lines);
}

function targetLine(results: readonly RowResult[], { what, us, against, goal }: Target): string[] | null {
  const ours = valueAt(results, us);
  if (ours === null) return null;
  const other = against === undefined ? null : valueAt(results, against);
  const { ratio, missedBy } = judge(goal, ours, other);
  const named =
    against === undefined || other === null
      ? "–"
      : `${against.side} ${formatValue(against.figure, other)}${against.case === us.case ? "" : `, ${against.case}`}`;
  const shown = formatValue(us.figure, ours);
  return [
    what,
    shown,
    named,
    ratio === null ? "–" : `${digits(ratio)} ×`,
    goalText(goal, us.figure),
    verdict(goal, missedBy),
  ];
}

function verdict(goal: Goal, missedBy: number | null): string {
  if (goal.kind === "shown") return "";
  if (missedBy === null) return "not measured";
  return missedBy <= 1 ? "reached" : `**missed** by ${digits(missedBy)} ×, [why](#remarks)`;
}

function goalText(goal: Goal, figure: string): string {
  if (goal.kind === "shown") return "–";
  if (goal.kind === "at most") return `≤ ${formatValue(figure, goal.value)}`;
  return goal.kind === "within" ? `≤ ${goal.times} ×` : `≥ ${goal.times} ×`;
}

function details({ points, leftOut }: RowResult): string {
  const figures = [...new Set(points.flatMap((point) => Object.keys(point.figures)))];
  const runsOf = (all: Readonly<Record<string, Figure>>) => String(Object.values(all)[0]?.runs ?? 0);
  const lines = points.map((point) => [
    point.case,
    point.side,
    point.size.toLocaleString("en-US"),
    ...figures.map((name) => {
      const figure = point.figures[name];
      return figure === undefined ? "" : formatFigure(name, figure);
    }),
    runsOf(point.figures),
  ]);
  const left = leftOut.map(({ side, act, reason }) => `\n\n${side} could not ${act}: ${reason}`);
  return table(["case", "side", "size", ...figures.map(figureName), "runs"], lines) + left.join("");
}

function whoTable(results: readonly RowResult[]): string {
  const measured = new Set(results.flatMap(({ points }) => points.map(({ side }) => side)));
  const versions: Record<string, string> = Object.assign({}, ...results.map((each) => each.versions));
  const lines = (Object.values(sides) as Side[])
    .filter(({ name, durability }) => measured.has(name) && durability !== "")
    .map(({ name, packages, durability }) => [
      name,
      packages.map((each) => `\`${each}\` ${versions[each] ?? "?"}`).join(", ") || "–",
      durability,
    ]);
  return table(["side", "packages", "durability when an append returns"], lines);
}

function plotsOf(row: string): string[] {
  return curves
    .filter((each) => each.row === row)
    .map(({ file, title }) => `![${title}](benchmarks/${file})`);
}

export function renderPlots(results: readonly RowResult[]): Record<string, string> {
  const sizeAt = (place: Place) =>
    results
      .find(({ row }) => row === place.row)
      ?.points.find((each) => each.case === place.case && each.side === place.side)?.size;
  const drawn = curves.map(({ file, title, unit, lines }): [string, string] => {
    const series = lines.map(
      ([name, places]): Series => ({
        name,
        points: places.flatMap((place): [number, number][] => {
          const [size, ms] = [sizeAt(place), valueAt(results, place)];
          return size === undefined || ms === null ? [] : [[size, ms]];
        }),
      }),
    );
    return [file, plot(title, unit, series)];
  });
  return Object.fromEntries(drawn.filter(([, svg]) => svg !== ""));
}
