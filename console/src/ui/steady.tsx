import type { FocusEvent, RefCallback } from "react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import buttons from "./button.module.css";

export interface Steady<T> {
  readonly items: readonly T[];
  /** The rows that have arrived but are not shown yet. */
  readonly fresh: readonly T[];
  isGone(id: string): boolean;
  /** Shows the current rows, even though the pointer or the focus is still inside. */
  release(): void;
  /** Props for the element around the rows. */
  readonly hold: {
    readonly ref: RefCallback<HTMLElement>;
    onFocus(event: FocusEvent): void;
    onBlur(event: FocusEvent): void;
  };
}

/**
 * While the pointer or the keyboard focus is inside a list, its rows keep their positions. New rows are not shown, and
 * removed rows stay in their last state.
 */
export function useSteady<T extends { readonly id: string }>(
  items: readonly T[],
  /** Returns a changed row with the part of its old position that it keeps, such as its group. */
  inPlace: (now: T, before: T) => T = (now) => now,
  /** Whether rows can be added at the end. Above a fixed bottom edge, rows at the end would push the others up. */
  canGrow = true,
): Steady<T> {
  const [isPointed, setIsPointed] = useState(false);
  const [isFocused, setIsFocused] = useState(false);
  const [, setReleases] = useState(0);
  const around = useRef<HTMLElement | null>(null);
  // If the element under the pointer or with the focus is removed, React does not report that they have left.
  const watch = useCallback((element: HTMLElement | null) => {
    around.current = element;
    if (element === null) return;
    const watching = new AbortController();
    const { signal } = watching;
    const onEnter = ({ pointerType }: PointerEvent) => setIsPointed(pointerType === "mouse");
    element.addEventListener("pointerenter", onEnter, { signal });
    element.addEventListener("pointerleave", () => setIsPointed(false), { signal });
    return () => {
      watching.abort();
      setIsPointed(false);
    };
  }, []);
  useEffect(() => {
    if (isFocused && around.current?.contains(document.activeElement) !== true) setIsFocused(false);
  });
  const held = useRef<readonly T[] | null>(null);
  if (!isPointed && !isFocused) held.current = null;
  else if (held.current === null) held.current = items;
  else if (canGrow) held.current = withRest(held.current, items);
  const order = held.current;
  const shown = useMemo(() => {
    const current = new Map(items.map((item) => [item.id, item]));
    if (order === null) return { items, fresh: [], isGone: () => false };
    const known = new Set(order.map(({ id }) => id));
    return {
      items: order.map((before) => {
        const now = current.get(before.id);
        return now === undefined ? before : inPlace(now, before);
      }),
      fresh: items.filter(({ id }) => !known.has(id)),
      isGone: (id: string) => !current.has(id),
    };
  }, [items, order, inPlace]);
  return {
    ...shown,
    release: () => {
      held.current = null;
      setIsFocused(false);
      setReleases((count) => count + 1);
    },
    hold: {
      ref: watch,
      // Ignores the focus that a click sets, because that focus would stay after the pointer has left.
      onFocus: ({ target }) => setIsFocused(target.matches(":focus-visible")),
      onBlur: ({ currentTarget, relatedTarget }) => {
        if (!currentTarget.contains(relatedTarget)) setIsFocused(false);
      },
    },
  };
}

/** Adds the rows after the last known one, such as those on the next page, because they do not move other rows. */
function withRest<T extends { readonly id: string }>(order: readonly T[], items: readonly T[]): readonly T[] {
  if (order === items || order.length === 0) return items;
  const known = new Set(order.map(({ id }) => id));
  const end = items.findLastIndex(({ id }) => known.has(id)) + 1;
  return end === 0 || end === items.length ? order : [...order, ...items.slice(end)];
}

/**
 * Shows new rows. Must be inside the element that holds the rows, because the rows move as soon as the pointer leaves
 * it.
 */
export function FreshRows({
  steady,
  isUrgent = false,
}: {
  readonly steady: Steady<unknown>;
  /** Whether the new rows need the user. The button is then kept away from the position of the rows' own buttons. */
  readonly isUrgent?: boolean;
}) {
  const { fresh, release } = steady;
  if (fresh.length === 0) return null;
  const count = fresh.length.toLocaleString("en");
  return (
    <button
      type="button"
      className={buttons.button}
      data-look={isUrgent ? "fresh alarm" : "fresh"}
      onClick={release}
    >
      {isUrgent ? `${count} more ${fresh.length === 1 ? "needs" : "need"} you` : `${count} new`}
    </button>
  );
}
