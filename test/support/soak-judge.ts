/** Decides from samples whether a gateway's resources stay level under load. Pure. */

export interface SoakSample {
  readonly atMs: number;
  /** Measured after a garbage collection. */
  readonly heapBytes: number;
  /** Handles that keep the process's event loop alive, or could. */
  readonly resources: number;
  readonly fds: number;
  /** The total size of the folder's write-ahead logs. */
  readonly walBytes: number;
}

export interface Soaked {
  /** Sampled before the first client, after everything has been used once. */
  readonly before: SoakSample;
  readonly during: readonly SoakSample[];
  /** Sampled after the last client has left. */
  readonly after: SoakSample;
}

export interface Tolerance {
  /** The fraction of samples at the beginning that are ignored because caches are filling. */
  readonly warmUp: number;
  /** How much the heap can grow between the first sample after the warm-up and the last one. */
  readonly heapBytes: number;
  /** How many more handles and files there can be afterward than before. */
  readonly surplus: number;
  readonly walBytes: number;
}

const mebi = 1024 * 1024;

export const usualTolerance: Tolerance = {
  warmUp: 1 / 3,
  heapBytes: 4 * mebi,
  surplus: 2,
  walBytes: 32 * mebi,
};

const leastSamples = 6;

/** Returns the resources that do not stay level. Empty if there are none. */
export function judgeSoak({ before, during, after }: Soaked, tolerance = usualTolerance): string[] {
  const warm = during.slice(Math.ceil(during.length * tolerance.warmUp));
  if (warm.length < leastSamples) return [`${warm.length} samples are too few to tell`];
  const climb = climbOf(warm);
  const widest = Math.max(...[...during, after].map(({ walBytes }) => walBytes));
  return [
    ...over("the heap climbed by", climb, tolerance.heapBytes, "bytes"),
    ...over("handles are left:", after.resources - before.resources, tolerance.surplus, "more"),
    ...over("files are left open:", after.fds - before.fds, tolerance.surplus, "more"),
    ...over("write-ahead logs came to", widest, tolerance.walBytes, "bytes"),
  ];
}

/** Returns the growth at this slope from the first sample to the last. */
function climbOf(samples: readonly SoakSample[]): number {
  const [first, last] = [samples[0], samples.at(-1)] as [SoakSample, SoakSample];
  const points = samples.map(({ atMs, heapBytes }) => [atMs, heapBytes] as const);
  return theilSen(points) * (last.atMs - first.atMs);
}

/**
 * Returns the median of the slopes between every two points. It tolerates up to a third of the points being outliers.
 */
export function theilSen(points: readonly (readonly [number, number])[]): number {
  const slopes = points.flatMap(([x, y], index) =>
    points.slice(index + 1).flatMap(([x2, y2]) => (x2 === x ? [] : [(y2 - y) / (x2 - x)])),
  );
  const sorted = slopes.toSorted((one, other) => one - other);
  const half = Math.floor(sorted.length / 2);
  const [low = 0, high = 0] = [sorted[sorted.length % 2 === 0 ? half - 1 : half], sorted[half]];
  return (low + high) / 2;
}

function over(what: string, value: number, most: number, unit: string): string[] {
  return value > most ? [`${what} ${Math.round(value)} ${unit}, at most ${most} are in order`] : [];
}
