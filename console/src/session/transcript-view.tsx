import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef } from "react";
import type { LiveAnswer, TranscriptEntry, TranscriptState } from "../live/transcript.ts";
import { EntryRow } from "./entry-row.tsx";
import type { Fork } from "./forks.ts";
import { LiveRow } from "./live-row.tsx";
import { isShown } from "./rows.ts";
import styles from "./transcript-view.module.css";

export type Item =
  | { readonly kind: "entry"; readonly id: string; readonly entry: TranscriptEntry }
  | { readonly kind: "live"; readonly id: string; readonly answer: LiveAnswer };

/** The rows of a transcript: settled entries, then the answers that are being written. */
export function useItems({ entries, live }: Pick<TranscriptState, "entries" | "live">): readonly Item[] {
  const settled = useMemo(
    () => entries.filter(isShown).map((entry): Item => ({ kind: "entry", id: entry.id, entry })),
    [entries],
  );
  return useMemo(
    () =>
      live.length === 0
        ? settled
        : [...settled, ...live.map((answer): Item => ({ kind: "live", id: `live:${answer.runId}`, answer }))],
    [settled, live],
  );
}

export interface TranscriptViewProps {
  readonly items: readonly Item[];
  readonly agentId: string;
  readonly hasEarlier: boolean;
  readonly loadEarlier: () => void;
  readonly hasLater: boolean;
  readonly loadLater: () => void;
  /** The row to bring into view; a new object brings it into view again. */
  readonly target: { readonly id: string } | null;
  readonly highlight: string;
  readonly forks: ReadonlyMap<string, Fork>;
}

/**
 * The list has one owner of its scroll position: the virtualizer, anchored to the end. It follows new rows while the end is in
 * view to the pixel, and otherwise keeps the first visible row where it is.
 */
export function TranscriptView({
  items,
  agentId,
  hasEarlier,
  loadEarlier,
  hasLater,
  loadLater,
  target,
  highlight,
  forks,
}: TranscriptViewProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const keyOf = useCallback((index: number) => items[index]?.id ?? index, [items]);
  const list = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 96,
    getItemKey: keyOf,
    overscan: 8,
    anchorTo: "end",
    followOnAppend: !hasLater,
    // One pixel above the end is not the end. Less than one is: zoomed pages scroll by fractions.
    scrollEndThreshold: 0.9,
    useAnimationFrameWithResizeObserver: false,
  });

  const hasItems = items.length > 0;
  useLayoutEffect(() => {
    if (hasItems && target === null) list.scrollToEnd();
    // Only when the first rows arrive; afterwards the anchor keeps the place.
  }, [hasItems]);

  useEffect(() => {
    if (target === null) return;
    const index = items.findIndex(({ id }) => id === target.id);
    if (index >= 0) list.scrollToIndex(index, { align: "center" });
    // A changed list must not scroll again; only a new target does.
  }, [target, hasItems]);

  // A composer or a list that grows makes the view smaller. That is no reason to stop following.
  const isAtEnd = useRef(target === null);
  const noteScroll = () => {
    const { scrollHeight, clientHeight, scrollTop } = scroller.current as HTMLDivElement;
    isAtEnd.current = scrollHeight - clientHeight - scrollTop <= 0.9;
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) list.scrollToEnd();
    });
    observer.observe(scroller.current as HTMLDivElement);
    return () => observer.disconnect();
  }, [list]);

  const rows = list.getVirtualItems();
  const first = rows[0]?.index ?? 0;
  useEffect(() => {
    if (first < 10 && hasEarlier && hasItems) loadEarlier();
  }, [first, hasEarlier, hasItems, loadEarlier]);
  const last = rows.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasLater && last >= items.length - 10) loadLater();
  }, [last, hasLater, items.length, loadLater]);

  return (
    <div
      ref={scroller}
      className={styles.scroller}
      onScroll={noteScroll}
      tabIndex={0}
      role="region"
      aria-label="Transcript"
    >
      <ol className={styles.list} style={{ height: list.getTotalSize() }}>
        {rows.map((row) => {
          const item = items[row.index];
          if (item === undefined) return null;
          return (
            <li
              key={row.key}
              ref={list.measureElement}
              data-index={row.index}
              className={styles.row}
              style={{ transform: `translateY(${row.start}px)` }}
            >
              {item.kind === "entry" ? (
                <EntryRow
                  entry={item.entry}
                  agentId={agentId}
                  highlight={highlight}
                  isTarget={item.id === target?.id}
                  fork={forks.get(item.id)}
                />
              ) : (
                <LiveRow answer={item.answer} agentId={agentId} />
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}
