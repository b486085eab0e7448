import type { FocusEvent, KeyboardEvent } from "react";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { hasLetterKeys, isTyping } from "./keys.ts";

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

/** One tab stop for a list of rows: arrows, `j` and `k`, page keys, Home and End move the focus among them. */
export function useRoving(ids: readonly string[]) {
  const list = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState<string | null>(null);
  const stop = current !== null && ids.includes(current) ? current : (ids[0] ?? null);
  const focus = (id: string) => {
    const row = list.current?.querySelector<HTMLElement>(`[data-roving="${CSS.escape(id)}"]`);
    row?.focus();
    row?.scrollIntoView({ block: "nearest" });
  };
  const hadFocus = useRef(false);
  const keepFocus = useEffectEvent(() => {
    if (hadFocus.current && stop !== null && document.activeElement === document.body) focus(stop);
  });
  // The row that had the focus may be gone.
  useEffect(() => keepFocus(), [ids]);
  return {
    list,
    /** The row that has the focus or gets it next. */
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
        // A row that is removed, and a window that is left, lose the focus to nothing.
        if (relatedTarget !== null) hadFocus.current = false;
      },
    }),
    onKeyDown: (event: KeyboardEvent) => {
      const step = steps[event.key];
      if (step === undefined || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      if (event.key.length === 1 && !hasLetterKeys()) return;
      event.preventDefault();
      const at = stop === null ? -1 : ids.indexOf(stop);
      const next = ids[Math.max(0, Math.min(ids.length - 1, at + step))];
      if (next !== undefined) focus(next);
    },
  };
}
