import type { Series } from "./plot.ts";
import { plot, plotBars } from "./plot.ts";
import { figureName } from "./render.ts";
import type { RowResult } from "./results.ts";
import type { Place } from "./target.ts";
import { at } from "./target.ts";

/** The metrics to plot and the row that each one belongs to. */
interface Chart {
  readonly file: string;
  readonly row: string;
  readonly title: string;
  /** Whether it is on the first page too. */
  readonly isMain: boolean;
  /** The label of the horizontal axis. */
  readonly unit: string;
  /** A curve over the sizes of its places, or a bar if it has one place. */
  readonly lines: readonly (readonly [name: string, places: readonly Place[]])[];
}

export const charts: readonly Chart[] = [
  {
    file: "open.svg",
    row: "open-compacted",
    title: "Open a session and build its context",
    isMain: true,
    unit: "entries",
    lines: [
      ["pi, compacted", growth("open-compacted", "pi")],
      ["pi, never compacted", growth("open-whole", "pi")],
      ["skein, never compacted", growth("open-whole", "skein (full)")],
      ["skein, compacted", growth("open-compacted", "skein (full)")],
    ],
  },
  {
    file: "append.svg",
    row: "append",
    title: "Append messages of 1,000 characters, one at a time",
    isMain: true,
    unit: "messages per second",
    lines: appends([
      ["skein", "skein (full)"],
      ["skein, not synced", "skein (os)"],
      ["pi, not synced", "pi"],
      ["Cloudflare Sessions", "Cloudflare Sessions"],
      ["Mastra LibSQL", "Mastra LibSQL"],
      ["Google ADK", "Google ADK"],
      ["LangGraph SQLite", "LangGraph SQLite"],
      ["plain synced JSONL", "plain JSONL"],
    ]),
  },
  {
    file: "list.svg",
    row: "list",
    title: "List the first 100 sessions, filtered",
    isMain: true,
    unit: "sessions",
    lines: [
      ["pi", lists("pi")],
      ["Claude Agent SDK", lists("Claude Agent SDK")],
      ["skein", lists("skein (full)")],
    ],
  },
  {
    file: "search.svg",
    row: "search",
    title: "Full-text search, 95 % of queries within",
    isMain: true,
    unit: "messages",
    lines: [
      ["grep", searches("grep")],
      ["skein", searches("skein (full)")],
    ],
  },
  {
    file: "sessions-at-once.svg",
    row: "sessions-at-once",
    title: "One message to each of many sessions at once",
    isMain: false,
    unit: "sessions",
    lines: (["skein (full)", "skein (os)"] as const).map((side) => [side, crowds(side)]),
  },
  {
    file: "core.svg",
    row: "core",
    title: "In memory",
    isMain: false,
    unit: "entries",
    lines: (["parseMs", "linkMs", "contextMs"] as const).map((figure) => [
      figureName(figure),
      ["10k", "50k", "100k", "200k", "500k"].map((name) => ({
        row: "core",
        case: name,
        side: "skein core",
        figure,
      })),
    ]),
  },
];

function growth(row: string, side: string): Place[] {
  return ["10k", "100k", "500k"].map((name) => ({ row, case: name, side, figure: "ms" }));
}

function lists(side: string): Place[] {
  return ["1k", "10k", "100k"].map((name) => ({ row: "list", case: name, side, figure: "ms" }));
}

function crowds(side: string): Place[] {
  return ["100", "300", "1k"].map((name) => ({ row: "sessions-at-once", case: name, side, figure: "ms" }));
}

function searches(side: string): Place[] {
  return ["10k", "100k", "1m"].map((name) => at("search", name, side, "p95Ms"));
}

function appends(named: readonly (readonly [name: string, side: string])[]): [string, Place[]][] {
  return named.map(([name, side]) => [name, [at("append", "one at a time", side, "perSecond")]]);
}

function pointAt(results: readonly RowResult[], place: Place) {
  const points = results.find(({ row }) => row === place.row)?.points ?? [];
  return points.find((each) => each.case === place.case && each.side === place.side);
}

/** The median, or `null` if it was not measured. */
export function valueAt(results: readonly RowResult[], place: Place): number | null {
  return pointAt(results, place)?.figures[place.figure]?.median ?? null;
}

/** Returns an empty text if nothing was measured. */
export function drawChart({ title, unit, lines }: Chart, results: readonly RowResult[]): string {
  const series = lines.map(
    ([name, places]): Series => ({
      name,
      points: places.flatMap((place): [number, number][] => {
        const [size, value] = [pointAt(results, place)?.size, valueAt(results, place)];
        return size === undefined || value === null ? [] : [[size, value]];
      }),
    }),
  );
  return lines.every(([, places]) => places.length === 1)
    ? plotBars(title, unit, series)
    : plot(title, unit, series);
}
