import { useMemo, useRef } from "react";

/**
 * While the pointer hovers over a list, its rows keep their places: rows that arrive are counted but not shown, and rows that
 * leave stay as they were last.
 */
export function useSteady<T extends { readonly id: string }>(
  items: readonly T[],
  isHeld: boolean,
  /** What a row that has changed keeps of its old place, such as its group. */
  inPlace: (now: T, before: T) => T = (now) => now,
): { readonly items: readonly T[]; readonly freshCount: number; readonly isGone: (id: string) => boolean } {
  const held = useRef<readonly T[] | null>(null);
  if (!isHeld) held.current = null;
  else held.current ??= items;
  const order = held.current;
  return useMemo(() => {
    const current = new Map(items.map((item) => [item.id, item]));
    if (order === null) return { items, freshCount: 0, isGone: () => false };
    const known = new Set(order.map(({ id }) => id));
    return {
      items: order.map((before) => {
        const now = current.get(before.id);
        return now === undefined ? before : inPlace(now, before);
      }),
      freshCount: items.filter(({ id }) => !known.has(id)).length,
      isGone: (id: string) => !current.has(id),
    };
  }, [items, order, inPlace]);
}
