import type { EdgeMark, Lane, Lanes } from "./lanes.ts";

interface LaneRow {
  readonly lane: Lane;
  readonly index: number;
  /** The vertical position of its thread. */
  readonly y: number;
}

interface PlacedEdge {
  readonly mark: EdgeMark;
  readonly thread: number;
  readonly x: number;
  readonly fromY: number;
  readonly toY: number;
  readonly crossed: readonly number[];
}

const slotWidth = 8;
const slots = [0, 1, -1, 2, -2, 3, -3].map((slot) => slot * slotWidth);

/** Places arrows that would overlap side by side and routes them over and under the threads between their ends. */
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
    const wanted = xOf(mark.at);
    const recent = placed.slice(-60);
    const isTaken = (x: number) =>
      recent.some((other) => Math.abs(other.x - x) < slotWidth && other.top <= bottom && top <= other.bottom);
    const x = slots.map((slot) => wanted + slot).find((each) => !isTaken(each) && !isFolded(each)) ?? wanted;
    placed.push({ x, top, bottom });
    const crossed = byIndex
      .slice(top + 1, bottom)
      .filter(({ index, lane }) => lane.from <= mark.at && (index + order) % 2 === 0);
    return [
      { mark, thread: from.lane.thread, x, fromY: from.y, toY: to.y, crossed: crossed.map(({ y }) => y) },
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
