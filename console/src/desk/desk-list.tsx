import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight } from "lucide-react";
import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { useGateway } from "../connect/gateway.tsx";
import { useDesk } from "../frame.tsx";
import type { Fold } from "../live/finished-children.ts";
import { useOpenPlace } from "../live/home.ts";
import { idOf, stateWord, taskOf } from "../live/session-row.ts";
import { ownerOf, placeOf, sessionPath } from "../paths.ts";
import { useOpenFolds } from "../ui/foldable.tsx";
import { FullName, SessionName } from "../ui/session-head.tsx";
import { FreshRows } from "../ui/steady.tsx";
import { rowHeight, threadOf } from "../ui/theme.ts";
import { shortTime } from "../ui/time.ts";
import type { RowLine } from "./desk-lines.ts";
import { useDeskLines } from "./desk-lines.ts";
import styles from "./desk-list.module.css";

/** The list of sessions at the side of every page. Finished sub-agents are folded under their parents. */
export function DeskList() {
  const { rows, approvals, status, error, hasMore, desk } = useDesk();
  const openId = useOpenId();
  const [openFolds, toggleFold] = useOpenFolds("sidebar");
  const { lines, steady } = useDeskLines(rows, approvals, { openFolds, openId });
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: rowHeight,
    getItemKey: (index) => lines[index]?.id ?? index,
    overscan: 12,
  });
  const items = list.getVirtualItems();
  useLoadMore(hasMore && error === null, items.at(-1)?.index, lines.length, rows.length, () =>
    desk.loadMore(),
  );
  if (status === "failed") return <p className={styles.notice}>{error}</p>;
  return (
    <div className={styles.desk} {...steady.hold}>
      <FreshRows steady={steady} />
      <div ref={scroller} className={styles.scroller}>
        <ul className={styles.list} aria-label="Sessions" style={{ height: list.getTotalSize() }}>
          {items.map((item) => {
            const line = lines[item.index];
            if (line === undefined) return null;
            return (
              <li key={item.key} className={styles.item} style={{ transform: `translateY(${item.start}px)` }}>
                {line.kind === "head" ? (
                  <h2 className={styles.head} data-part={line.id}>
                    {line.name} <span>{line.count}</span>
                  </h2>
                ) : line.kind === "row" ? (
                  <DeskRow line={line} isOpen={line.id === openId} isGone={steady.isGone(line.id)} />
                ) : line.kind === "fold" ? (
                  <FinishedFold fold={line} onToggle={toggleFold} />
                ) : null}
              </li>
            );
          })}
        </ul>
      </div>
    </div>
  );
}

/** The finished sub-agents of a session in one row, which shows and hides them. */
export function FinishedFold({
  fold: { host, count, isOpen },
  onToggle,
}: {
  readonly fold: Fold;
  readonly onToggle: (host: string) => void;
}) {
  const Chevron = isOpen ? ChevronDown : ChevronRight;
  return (
    <button type="button" className={styles.fold} aria-expanded={isOpen} onClick={() => onToggle(host)}>
      <Chevron size={13} aria-hidden /> {count.toLocaleString("en")} finished{" "}
      {count === 1 ? "sub-agent" : "sub-agents"}
    </button>
  );
}

/**
 * Reads the next page when the end of the lines is near. After a failure, waits until the rows are read again. Rows
 * loaded into a collapsed group add no lines, so a change in the row count also triggers the check.
 */
export function useLoadMore(
  isWanted: boolean,
  last: number | undefined,
  lineCount: number,
  rowCount: number,
  loadMore: () => Promise<void>,
): void {
  const isNear = isWanted && last !== undefined && last >= lineCount - 20;
  useEffect(() => {
    if (isNear) void loadMore();
  }, [isNear, lineCount, rowCount]);
}

function useOpenId(): string | null {
  const { client } = useGateway();
  const place = useOpenPlace();
  return place === null ? null : idOf({ ...place, userId: ownerOf(client, place) });
}

interface DeskRowProps {
  readonly line: RowLine;
  readonly isOpen: boolean;
  readonly isGone: boolean;
}

function DeskRow({ line: { row, part, host, approvalCount }, isOpen, isGone }: DeskRowProps) {
  return (
    <Link
      href={sessionPath(placeOf(row))}
      className={styles.row}
      data-thread={threadOf(row.sessionId)}
      data-part={part}
      data-nested={host !== null || undefined}
      data-gone={isGone || undefined}
      aria-current={isOpen ? "page" : undefined}
    >
      <span className={styles.thread} aria-hidden />
      <span className={styles.name}>
        <SessionName name={<FullName row={row} />} task={taskOf(row)} />
      </span>
      {approvalCount > 0 ? (
        <span className={styles.alarm}>
          {approvalCount === 1 ? "approve" : `${approvalCount} to approve`}
        </span>
      ) : row.state === "failed" ? (
        <span className={styles.failed}>{stateWord(row)}</span>
      ) : (
        <time className={styles.time}>{row.status === "running" ? "…" : shortTime(row.updatedAt)}</time>
      )}
    </Link>
  );
}
