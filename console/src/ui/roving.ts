import type { FocusEvent, KeyboardEvent } from "react";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { hasLetterKeys, isTyping } from "./keys.tsx";

const steps: Readonly<Record<string, number>> = {
  ArrowDown: 1,
  j: 1,
  ArrowUp: -1,
  k: -1,
  PageDown: 10,
  PageUp: -10,
  Home: -Number.MAX_SAFE_INTEGER,
  End: Number.MAX_SAFE_INTEGER,
};

/**
 * A single tab stop for a list of rows. Arrow keys, `j` and `k`, page keys, Home and End move the focus among the rows.
 * `reveal` mounts a row in a virtual list.
 */
export function useRoving(ids: readonly string[], reveal?: (id: string) => void) {
  const list = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState<string | null>(null);
  const at = useRef(0);
  const found = current === null ? -1 : ids.indexOf(current);
  if (found >= 0) at.current = found;
  // When a row is removed, the next row takes its position.
  const stop = ids[Math.min(at.current, ids.length - 1)] ?? null;
  const find = (id: string) => list.current?.querySelector<HTMLElement>(`[data-roving="${CSS.escape(id)}"]`);
  const focus = (id: string) => {
    setCurrent(id);
    if (reveal !== undefined) {
      reveal(id);
      // The row might not be mounted until after the scroll.
      return void requestAnimationFrame(() => find(id)?.focus());
    }
    const row = find(id);
    row?.focus();
    row?.scrollIntoView({ block: "nearest" });
  };
  const hadFocus = useRef(false);
  const keepFocus = useEffectEvent(() => {
    if (!hadFocus.current || stop === null || document.activeElement !== document.body) return;
    // A row in a virtual list that was scrolled out of view still exists.
    if (reveal === undefined || stop !== current) focus(stop);
  });
  // The row that had the focus might no longer exist.
  useEffect(() => keepFocus(), [ids]);
  return {
    list,
    /** The row that has the focus or receives it next. */
    stop,
    focus,
    item: (id: string) => ({
      "data-roving": id,
      tabIndex: id === stop ? 0 : -1,
      onFocus: () => {
        hadFocus.current = true;
        setCurrent(id);
      },
      onBlur: ({ relatedTarget }: FocusEvent) => {
        // When a row is removed or the user leaves the window, the focus is lost without a new target.
        if (relatedTarget !== null) hadFocus.current = false;
      },
    }),
    onKeyDown: (event: KeyboardEvent) => {
      const step = steps[event.key];
      if (step === undefined || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      if (event.key.length === 1 && !hasLetterKeys()) return;
      // A panel next to the rows has its own keys.
      if (!(event.target instanceof Node) || list.current?.contains(event.target) !== true) return;
      event.preventDefault();
      const from = stop === null ? -1 : ids.indexOf(stop);
      const next = ids[Math.max(0, Math.min(ids.length - 1, from + step))];
      if (next !== undefined) focus(next);
    },
  };
}
