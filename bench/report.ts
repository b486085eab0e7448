import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeScalePage } from "../scripts/simulation/scale-page.ts";
import { charts, drawChart, valueAt } from "./charts.ts";
import { digits, figureName, formatFigure, formatValue, table } from "./render.ts";
import type { Figure, RowResult } from "./results.ts";
import { readResults } from "./results.ts";
import { rows } from "./rows/all.ts";
import type { Side } from "./sides.ts";
import { sides } from "./sides.ts";
import type { Goal, Target } from "./target.ts";
import { judge } from "./target.ts";
import { targets } from "./targets/all.ts";
import { quietLoad } from "./wait-for-quiet.ts";

/** Generates the pages from the results, deterministically. Text outside the markers is written by hand. */

const begin = "<!-- generated from bench/results by npm run bench: begin -->";
const end = "<!-- generated: end -->";
export const docsFolder = fileURLToPath(new URL("../docs/", import.meta.url));

type Results = readonly RowResult[];

/** The pages with their generated parts: one screen for most readers, and everything that was measured. */
export const pages: Readonly<Record<string, (results: Results) => string>> = {
  "benchmarks.md": renderFirstPage,
  "benchmarks-all.md": renderAllRows,
};

export function writeReport(): void {
  const results = readResults();
  for (const [name, render] of Object.entries(pages)) {
    const path = join(docsFolder, name);
    writeFileSync(path, withGenerated(readFileSync(path, "utf8"), render(results)));
  }
  mkdirSync(join(docsFolder, "benchmarks"), { recursive: true });
  for (const [name, svg] of Object.entries(renderPlots(results)))
    writeFileSync(join(docsFolder, "benchmarks", name), svg);
  writeScalePage(join(docsFolder, "scale.md"));
  console.log(
    "written: bench/results, docs/benchmarks.md, docs/benchmarks-all.md, docs/benchmarks/*.svg, docs/scale.md",
  );
}

/** Returns the page with its generated part replaced. */
export function withGenerated(page: string, generated: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to < from) throw new Error("a benchmark page has lost its markers; restore them");
  return `${page.slice(0, from + begin.length)}\n\n${generated}\n\n${page.slice(to)}`;
}

/** One line per headline, with the peer that comes closest, and the main plots. */
export function renderFirstPage(results: Results): string {
  const headlines = Map.groupBy(
    targets.filter(({ headline }) => headline !== undefined),
    ({ headline = "" }) => headline,
  );
  const lines = [...headlines].flatMap(([headline, group]) => headlineLine(results, headline, group));
  const plots = charts
    .filter(({ isMain }) => isMain)
    .map(({ file, title }) => `![${title}](benchmarks/${file})`);
  return [table(["what", "Skein", "nearest peer", "ratio", "target", ""], lines), ...plots].join("\n\n");
}

function headlineLine(results: Results, headline: string, group: readonly Target[]): string[][] {
  const judged = group.flatMap((target) => assess(results, target) ?? []);
  const [first] = judged;
  if (first === undefined) return [];
  const compared = judged.filter(({ ratio }) => ratio !== null);
  const nearest = compared.toSorted((a, b) => (a.ratio ?? 0) - (b.ratio ?? 0))[0] ?? first;
  const goals = judged.filter(({ target }) => target.goal.kind !== "shown");
  const worst = goals.toSorted((a, b) => (b.missedBy ?? 0) - (a.missedBy ?? 0))[0] ?? first;
  const limits = new Set(goals.map(({ target }) => goalText(target.goal, target.us.figure)));
  return [
    [
      headline,
      formatValue(first.target.us.figure, first.ours),
      nearest.against,
      ratioText(nearest.ratio),
      [...limits].join(", "),
      verdict(worst),
    ],
  ];
}

export function renderAllRows(results: Results): string {
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
function measuredWhere(results: Results): string {
  const groups = Map.groupBy(results, ({ machine, commit, measuredAt, isQuick }) => {
    const quick = isQuick ? ", quick: sizes / 20" : "";
    return `${machine}; commit \`${commit}\`, ${measuredAt.slice(0, 10)}${quick}`;
  });
  return [...groups]
    .map(([where, some]) => {
      const named = groups.size === 1 ? "Measured on" : `${some.map(({ row }) => row).join(", ")}: on`;
      const loads = some.map(({ load }) => load);
      const [least, most] = [Math.min(...loads), Math.max(...loads)];
      const busy = some.filter(({ load }) => load >= quietLoad).map(({ row }) => row);
      const note =
        busy.length === 0
          ? ""
          : ` These began at a load average of ${quietLoad} or more: ${busy.join(", ")}.`;
      return `${named} ${where}. Load average before each row: ${least} – ${most}.${note}`;
    })
    .join("\n");
}

function targetTable(results: Results): string {
  const lines = targets.flatMap((target) => {
    const judged = assess(results, target);
    if (judged === null) return [];
    const { ours, against, ratio } = judged;
    const { us, goal } = target;
    const goalShown = goalText(goal, us.figure);
    return [
      [target.what, formatValue(us.figure, ours), against, ratioText(ratio), goalShown, verdict(judged)],
    ];
  });
  return table(["what", "us", "against", "ratio", "must reach", ""], lines);
}

interface Assessment extends ReturnType<typeof judge> {
  readonly target: Target;
  readonly ours: number;
  /** The other side with its value. */
  readonly against: string;
}

function assess(results: Results, target: Target): Assessment | null {
  const { us, against, goal } = target;
  const ours = valueAt(results, us);
  if (ours === null) return null;
  const other = against === undefined ? null : valueAt(results, against);
  const named =
    against === undefined || other === null
      ? "–"
      : `${against.side} ${formatValue(against.figure, other)}${against.case === us.case ? "" : `, ${against.case}`}`;
  return { target, ours, against: named, ...judge(goal, ours, other) };
}

function ratioText(ratio: number | null): string {
  return ratio === null ? "–" : `${digits(ratio)} ×`;
}

function verdict({ target: { goal }, missedBy }: Assessment): string {
  if (goal.kind === "shown") return "";
  if (missedBy === null) return "not measured";
  return missedBy <= 1 ? "reached" : `**missed** by ${digits(missedBy)} ×, [why](benchmarks-all.md#remarks)`;
}

function goalText(goal: Goal, figure: string): string {
  if (goal.kind === "shown") return "–";
  if (goal.kind === "at most") return `≤ ${formatValue(figure, goal.value)}`;
  if (goal.kind === "at least") return `≥ ${formatValue(figure, goal.value)}`;
  if (goal.kind === "above") return `≥ ${goal.by < 0 ? "−" : "+"}${Math.abs(goal.by)}`;
  const times = goal.times.toLocaleString("en-US");
  return goal.kind === "within" ? `≤ ${times} ×` : `≥ ${times} ×`;
}

function details({ points, leftOut, problem }: RowResult): string {
  if (problem !== undefined) return `This row could not be measured: ${problem}`;
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

function whoTable(results: Results): string {
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
  return charts
    .filter((each) => each.row === row)
    .map(({ file, title }) => `![${title}](benchmarks/${file})`);
}

export function renderPlots(results: Results): Record<string, string> {
  const drawn = charts.map((chart): [string, string] => [chart.file, drawChart(chart, results)]);
  return Object.fromEntries(drawn.filter(([, svg]) => svg !== ""));
}
