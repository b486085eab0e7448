import { elementScroll, useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef } from "react";
import type { LiveAnswer } from "../live/live-answers.ts";
import type { TranscriptEntry, TranscriptState } from "../live/transcript.ts";
import { EntryRow } from "./entry-row.tsx";
import type { Fork } from "./forks.ts";
import { LiveRow } from "./live-row.tsx";
import type { ReadingPosition } from "./reading-position.ts";
import { RowBoundary } from "./row-boundary.tsx";
import { isShown } from "./rows.ts";
import styles from "./transcript-view.module.css";

export interface EntryItem {
  readonly kind: "entry";
  readonly id: string;
  readonly entry: TranscriptEntry;
}
export type Item = EntryItem | { readonly kind: "live"; readonly id: string; readonly answer: LiveAnswer };

/** The rows of a transcript: settled entries, followed by the answers that are being written. */
export function useItems(state: TranscriptState): {
  readonly settled: readonly EntryItem[];
  readonly items: readonly Item[];
} {
  const { entries, live } = state;
  const isEnd = !state.hasLater && state.branchLeafId === null;
  const settled = useMemo(
    () => entries.filter(isShown).map((entry): EntryItem => ({ kind: "entry", id: entry.id, entry })),
    [entries],
  );
  const items = useMemo(
    () =>
      live.length === 0 || !isEnd
        ? settled
        : [...settled, ...live.map((answer): Item => ({ kind: "live", id: `live:${answer.runId}`, answer }))],
    [settled, live, isEnd],
  );
  return { settled, items };
}

/** What to scroll into view once: an entry, or the end (`null`). A new object with the same target scrolls again. */
export interface Target {
  readonly id: string | null;
  /** Set if reading resumes at the entry: how many of its pixels are above the view. The entry is not highlighted. */
  readonly offset?: number;
}

export interface TranscriptViewProps {
  readonly items: readonly Item[];
  readonly agentId: string;
  readonly hasEarlier: boolean;
  readonly loadEarlier: () => void;
  readonly hasLater: boolean;
  readonly loadLater: () => void;
  readonly loadError: string | null;
  readonly target: Target | null;
  readonly onRead: (position: ReadingPosition | null) => void;
  /** The words in the find bar and the rows that contain them. */
  readonly highlight: string;
  readonly matches: ReadonlySet<string>;
  readonly forks: ReadonlyMap<string, Fork>;
}

/**
 * Only the virtualizer controls the list's scroll position. It is anchored to the end. While the end is exactly in
 * view, it follows new rows. Otherwise, it keeps the first visible row in position.
 */
export function TranscriptView({
  items,
  agentId,
  hasEarlier,
  loadEarlier,
  hasLater,
  loadLater,
  loadError,
  target,
  onRead,
  highlight,
  matches,
  forks,
}: TranscriptViewProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const rowList = useRef<HTMLOListElement>(null);
  const keyOf = useCallback((index: number) => items[index]?.id ?? index, [items]);
  const list = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 96,
    getItemKey: keyOf,
    overscan: 8,
    anchorTo: "end",
    followOnAppend: !hasLater,
    // A position less than one pixel above the end counts as the end, because zoomed pages scroll by fractions.
    scrollEndThreshold: 0.9,
    scrollPaddingStart: -(target?.offset ?? 0),
    useAnimationFrameWithResizeObserver: false,
    scrollToFn: (...target) => {
      elementScroll(...target);
      notePosition();
    },
  });

  // The view follows the end until the user scrolls up. Other changes do not stop this: a view that shrinks, rows that
  // are taller than estimated, and the browser's jump when a shorter entry replaces an answer.
  const isAtEnd = useRef(target === null);
  const hasItems = items.length > 0;
  useLayoutEffect(() => {
    if (hasItems && target === null) list.scrollToEnd();
    // Runs only when the first rows arrive. After that, the anchor keeps the position.
  }, [hasItems]);

  const targetIndex = useMemo(() => items.findIndex(({ id }) => id === target?.id), [items, target]);
  const reached = useRef<Target | null>(null);
  useEffect(() => {
    if (target === null || target === reached.current) return;
    if (target.id === null) {
      isAtEnd.current = true;
      return list.scrollToEnd();
    }
    if (targetIndex < 0) {
      // If the entry is not loaded yet, nothing happens. An entry at which reading resumes might no longer exist.
      if (target.offset === undefined) return;
      isAtEnd.current = true;
      return list.scrollToEnd();
    }
    reached.current = target;
    // Does not rely on the scroll event, because rows that are shorter than estimated could prevent it.
    isAtEnd.current = false;
    list.scrollToIndex(targetIndex, { align: target.offset === undefined ? "center" : "start" });
    // A changed list must not scroll again. Only a new target does, at the latest when its page has been loaded.
  }, [target, hasItems, targetIndex >= 0]);

  // The browser scrolls up when the rows become shorter or the view becomes taller. Its scroll event arrives later,
  // when there might be new rows. If the reported position was the end at any time since the last event, the reader did
  // not scroll there. The page's own scrolling is also reported late, combined with any scrolling by the reader since.
  const last = useRef({ top: 0, end: 0 });
  const endOf = ({ scrollHeight, clientHeight }: HTMLElement) => scrollHeight - clientHeight;
  const measureEnd = () => {
    if (scroller.current !== null) last.current.end = Math.min(last.current.end, endOf(scroller.current));
  };
  const notePosition = () => {
    if (scroller.current !== null)
      last.current = { top: scroller.current.scrollTop, end: endOf(scroller.current) };
  };
  const noteScroll = () => {
    // The event can arrive after the transcript was hidden because another view is loading.
    if (scroller.current === null) return;
    measureEnd();
    const { scrollTop: top } = scroller.current;
    if (endOf(scroller.current) - top <= 0.9) isAtEnd.current = true;
    else if (isAtEnd.current && top < last.current.top && last.current.end - top > 0.9) {
      isAtEnd.current = false;
      list.cancelScroll();
      // If the position differs by only a pixel after the virtualizer's own scrolling, the virtualizer attributes the
      // next event to that scrolling. It accepts a second event as the reader's.
      scroller.current.dispatchEvent(new Event("scroll"));
    }
    notePosition();
    const row = list.getVirtualItemForOffset(top);
    const id = items[row?.index ?? -1]?.id;
    const isEnd = isAtEnd.current && !hasLater;
    onRead(isEnd || row === undefined || id === undefined ? null : { id, offset: top - row.start });
  };
  useLayoutEffect(measureEnd);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => {
      measureEnd();
      if (isAtEnd.current && !hasLater) list.scrollToEnd();
    });
    for (const element of [scroller.current, rowList.current]) observer.observe(element as Element);
    return () => observer.disconnect();
  }, [list, hasLater]);

  const highlighted = target?.offset === undefined ? target?.id : null;
  const rows = list.getVirtualItems();
  const first = rows[0]?.index ?? 0;
  useEffect(() => {
    // Right after the list is scrolled to a target, the rows are still those at the top. Rows added in front of the
    // target would then make the virtualizer scroll to a different one.
    const top = list.getVirtualItemForOffset(scroller.current?.scrollTop ?? 0)?.index ?? 0;
    if (top > 20) return;
    if (first < 10 && hasEarlier && items.length > 0 && loadError === null) loadEarlier();
  }, [first, hasEarlier, items.length, loadEarlier, loadError]);
  const lastIndex = rows.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasLater && lastIndex >= items.length - 10 && loadError === null) loadLater();
  }, [lastIndex, hasLater, items.length, loadLater, loadError]);

  return (
    <div
      ref={scroller}
      className={styles.scroller}
      onScroll={noteScroll}
      tabIndex={0}
      data-takes-focus
      role="region"
      aria-label="Transcript"
    >
      <ol ref={rowList} className={styles.list} style={{ height: list.getTotalSize() }}>
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
                <RowBoundary entry={item.entry} isTarget={item.id === highlighted}>
                  <EntryRow
                    entry={item.entry}
                    agentId={agentId}
                    highlight={matches.has(item.id) ? highlight : ""}
                    isTarget={item.id === highlighted}
                    fork={forks.get(item.id)}
                  />
                </RowBoundary>
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
