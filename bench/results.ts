import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The results of a run. There is one file per row, from which the report is generated. */

export interface Figure {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly runs: number;
}

/** One side in one case of a row. */
export interface Point {
  /** The case, named after its full size even in a quick run, such as `500k`. */
  readonly case: string;
  /** The size that was measured. */
  readonly size: number;
  /** The name of a side or a step. */
  readonly side: string;
  readonly figures: Readonly<Record<string, Figure>>;
}

export interface RowResult {
  readonly row: string;
  readonly measuredAt: string;
  readonly machine: string;
  readonly commit: string;
  /** The load average over the last minute before the measurement. */
  readonly load: number;
  /** How long the row waited for a load average below the limit. Missing in older results. */
  readonly waitedSeconds?: number;
  /** `true` if sizes were divided by twenty. */
  readonly isQuick: boolean;
  /** Keyed by package. */
  readonly versions: Readonly<Record<string, string>>;
  readonly points: readonly Point[];
  /** Why the row could not be measured. */
  readonly problem?: string;
  /** Sides that could not be measured, with the reason for each. */
  readonly leftOut: readonly { readonly side: string; readonly act: string; readonly reason: string }[];
}

export const resultsFolder = fileURLToPath(new URL("results/", import.meta.url));

export function readResults(folder = resultsFolder): RowResult[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .toSorted()
    .map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as RowResult);
}

export function writeResult(result: RowResult): void {
  mkdirSync(resultsFolder, { recursive: true });
  writeFileSync(join(resultsFolder, `${result.row}.json`), `${JSON.stringify(result, null, 1)}\n`);
}

/** The median and the spread, rounded to four digits. */
export function figureOf(values: readonly number[]): Figure {
  const sorted = values.toSorted((a, b) => a - b);
  const [middle, other] = [sorted[(sorted.length - 1) >> 1] ?? 0, sorted[sorted.length >> 1] ?? 0];
  return {
    median: rounded((middle + other) / 2),
    min: rounded(sorted[0] ?? 0),
    max: rounded(sorted.at(-1) ?? 0),
    runs: values.length,
  };
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
