import { figureName } from "./render.ts";
import type { Place } from "./targets.ts";

/** The metrics to plot and the row that each one belongs to. */
export interface Curve {
  readonly file: string;
  readonly row: string;
  readonly title: string;
  /** The label of the x axis. */
  readonly unit: string;
  readonly lines: readonly (readonly [name: string, places: readonly Place[]])[];
}

export const curves: readonly Curve[] = [
  {
    file: "open.svg",
    row: "open-compacted",
    title: "Open a session and build its context",
    unit: "entries",
    lines: [
      ["pi, compacted", growth("open-compacted", "pi")],
      ["pi, never compacted", growth("open-whole", "pi")],
      ["skein, never compacted", growth("open-whole", "skein (full)")],
      ["skein, compacted", growth("open-compacted", "skein (full)")],
    ],
  },
  {
    file: "list.svg",
    row: "list",
    title: "List the first 100 sessions, filtered",
    unit: "sessions",
    lines: [
      ["pi", lists("pi")],
      ["Claude Agent SDK", lists("Claude Agent SDK")],
      ["skein", lists("skein (full)")],
    ],
  },
  {
    file: "sessions-at-once.svg",
    row: "sessions-at-once",
    title: "One message to each of many sessions at once",
    unit: "sessions",
    lines: (["skein (full)", "skein (os)"] as const).map((side) => [side, crowds(side)]),
  },
  {
    file: "core.svg",
    row: "core",
    title: "In memory",
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
