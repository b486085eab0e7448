/** Decides from samples whether the resources of a gateway under load stay level. Pure. */

export interface SoakSample {
  readonly atMs: number;
  /** After a garbage collection. */
  readonly heapBytes: number;
  /** Handles that keep the event loop of the process alive, or could. */
  readonly resources: number;
  readonly fds: number;
  /** The total size of all write-ahead logs of the folder. */
  readonly walBytes: number;
}

export interface Soaked {
  /** Before the first client, after everything has been used once. */
  readonly before: SoakSample;
  readonly during: readonly SoakSample[];
  /** After the last client has left. */
  readonly after: SoakSample;
}

export interface Tolerance {
  /** The share of the samples at the beginning that is ignored, because caches fill. */
  readonly warmUp: number;
  /** How far the heap may grow from the first sample after the warm-up to the last one. */
  readonly heapBytes: number;
  /** How many more handles and files there may be afterwards than before. */
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

/** Each resource that does not stay level; empty: none. */
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

/** The growth by this slope from the first sample to the last. */
function climbOf(samples: readonly SoakSample[]): number {
  const [first, last] = [samples[0], samples.at(-1)] as [SoakSample, SoakSample];
  const points = samples.map(({ atMs, heapBytes }) => [atMs, heapBytes] as const);
  return theilSen(points) * (last.atMs - first.atMs);
}

/** The median of the slopes between every two points: a third of them may be outliers. */
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
