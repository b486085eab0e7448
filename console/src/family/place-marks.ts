import type { EdgeMark, Lane, Lanes } from "./lanes.ts";

interface LaneRow {
  readonly lane: Lane;
  readonly index: number;
  /** The vertical position of its thread. */
  readonly y: number;
}

export interface PlacedEdge {
  readonly mark: EdgeMark;
  readonly thread: number;
  /** Where the edge leaves its lane. */
  readonly fromX: number;
  /** The vertical part between the lanes. */
  readonly x: number;
  /** The beginning of the run that the edge leads to. `null` if the edge ends where it meets the lane. */
  readonly toX: number | null;
  readonly fromY: number;
  readonly toY: number;
  /** The lanes that the edge passes under. */
  readonly crossed: readonly number[];
}

/**
 * How far an arrow can be from its time, in pixels. If there are many arrows, they are placed closer together instead.
 */
const maxShift = 24;
/** The space for an arrow tip in front of a run. */
const tipWidth = 8;

/**
 * Places arrows that would overlap side by side and routes them over and under the threads between their ends. An arrow
 * stays in front of the run that it starts and behind the run that it answers for.
 */
export function placeEdges(
  edges: readonly EdgeMark[],
  rows: ReadonlyMap<string, LaneRow>,
  xOf: (at: number) => number,
  isFolded: (x: number) => boolean,
): readonly PlacedEdge[] {
  const byIndex = [...rows.values()];
  const placed: { x: number; top: number; bottom: number }[] = [];
  return edges.flatMap((mark, order): PlacedEdge[] => {
    const from = rows.get(mark.fromKey);
    const to = rows.get(mark.toKey);
    if (from === undefined || to === undefined) return [];
    const top = Math.min(from.index, to.index);
    const bottom = Math.max(from.index, to.index);
    const left = mark.leftAt === null ? null : xOf(mark.leftAt);
    const start = mark.startedAt === null ? null : xOf(mark.startedAt);
    const min = left ?? Number.NEGATIVE_INFINITY;
    const max = start === null ? Number.POSITIVE_INFINITY : start - tipWidth;
    const wanted = Math.max(min, Math.min(max, xOf(mark.at)));
    const near = placed.slice(-60).filter((other) => other.top <= bottom && top <= other.bottom);
    const findFree = (gap: number, limit: number) =>
      [wanted, ...near.flatMap((other) => [other.x - gap, other.x + gap])]
        .filter((each) => each >= min && each <= limit && Math.abs(each - wanted) <= maxShift)
        .filter((each) => near.every((other) => Math.abs(other.x - each) >= gap) && !isFolded(each))
        .sort((a, b) => Math.abs(a - wanted) - Math.abs(b - wanted))[0];
    const x =
      findFree(10, max) ??
      findFree(7, max) ??
      findFree(3, max) ??
      (left === null ? undefined : findFree(7, Number.POSITIVE_INFINITY)) ??
      wanted;
    placed.push({ x, top, bottom });
    const crossed = byIndex
      .slice(top + 1, bottom)
      .filter(({ index, lane }) => xOf(lane.from) <= x && (index + order) % 2 === 0);
    return [
      {
        mark,
        thread: from.lane.thread,
        fromX: left ?? x,
        x,
        toX: start !== null && start - x >= tipWidth ? start : null,
        fromY: from.y,
        toY: to.y,
        crossed: crossed.map(({ y }) => y),
      },
    ];
  });
}

interface MarkPlace {
  readonly id: string;
  readonly row: number;
  readonly at: number;
}

/** All marks by lane and time, for the arrow keys. An arrow belongs to the lane at its end. */
export function orderMarks(
  { spans, edges }: Lanes,
  rows: ReadonlyMap<string, LaneRow>,
): readonly MarkPlace[] {
  const rowOf = (key: string) => rows.get(key)?.index ?? 0;
  return [
    ...spans.map(({ id, key, from, queuedAt }): MarkPlace => ({ id, row: rowOf(key), at: from ?? queuedAt })),
    ...edges.map(({ id, toKey, at }): MarkPlace => ({ id, row: rowOf(toKey), at })),
  ].sort((a, b) => a.row - b.row || a.at - b.at);
}

export function nextMark(
  marks: readonly MarkPlace[],
  from: string | null,
  direction: "Left" | "Right" | "Up" | "Down",
): MarkPlace | null {
  const index = marks.findIndex(({ id }) => id === from);
  const current = marks[index];
  if (current === undefined) return marks[0] ?? null;
  if (direction === "Left" || direction === "Right") {
    const next = marks[index + (direction === "Left" ? -1 : 1)];
    return next?.row === current.row ? next : null;
  }
  const step = direction === "Up" ? -1 : 1;
  const target = marks
    .map(({ row }) => row)
    .filter((row) => (row - current.row) * step > 0)
    .reduce<number | null>((best, row) => (best === null || (best - row) * step > 0 ? row : best), null);
  return marks
    .filter(({ row }) => row === target)
    .reduce<MarkPlace | null>(
      (best, mark) =>
        best === null || Math.abs(mark.at - current.at) < Math.abs(best.at - current.at) ? mark : best,
      null,
    );
}
