import type { Point } from "../results.ts";
import type { Workshop } from "../workshop.ts";

/** One row of the report, with all its sizes and sides. */
export interface Row {
  readonly name: string;
  readonly title: string;
  measure(shop: Workshop): Promise<Point[]>;
}

/** The sizes, under the names used in results and targets. */
export const growthSizes = { "10k": 10_000, "100k": 100_000, "500k": 500_000 } as const;
export type GrowthSize = keyof typeof growthSizes;

/** Runs the cases one after another. */
export async function inTurn<T>(all: readonly T[], measure: (each: T) => Promise<Point[]>): Promise<Point[]> {
  const points: Point[] = [];
  for (const each of all) points.push(...(await measure(each)));
  return points;
}
