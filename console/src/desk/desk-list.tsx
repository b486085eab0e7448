import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { useGateway } from "../connect/gateway.tsx";
import { useDesk } from "../frame.tsx";
import { fullName, idOf, stateWord, taskOf } from "../live/session-row.ts";
import { ownerOf, placeOf, placeOfPath, sessionPath } from "../paths.ts";
import { SessionName } from "../ui/session-head.tsx";
import { FreshRows } from "../ui/steady.tsx";
import { rowHeight, threadOf } from "../ui/theme.ts";
import { shortTime } from "../ui/time.ts";
import type { RowLine } from "./desk-lines.ts";
import { useDeskLines } from "./desk-lines.ts";
import styles from "./desk-list.module.css";

/** The list of sessions at the side of every page. */
export function DeskList() {
  const { rows, approvals, status, error, hasMore, desk } = useDesk();
  const { lines, steady } = useDeskLines(rows, approvals);
  const openId = useOpenId();
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: rowHeight,
    getItemKey: (index) => lines[index]?.id ?? index,
    overscan: 12,
  });
  const items = list.getVirtualItems();
  useLoadMore(hasMore && error === null, items.at(-1)?.index, lines.length, () => void desk.loadMore());
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
                ) : null}
              </li>
            );
          })}
        </ul>
      </div>
    </div>
  );
}

/** Reads the next page when the end of the rows is near. After a failure, waits until the rows are read again. */
export function useLoadMore(
  isWanted: boolean,
  last: number | undefined,
  count: number,
  loadMore: () => void,
): void {
  const isNear = isWanted && last !== undefined && last >= count - 20;
  useEffect(() => {
    if (isNear) loadMore();
  }, [isNear, count]);
}

/** The session that the page shows. */
function useOpenId(): string | null {
  const { client } = useGateway();
  const [path] = useLocation();
  const [query] = useSearchParams();
  const place = placeOfPath(path, query);
  return place === null ? null : idOf({ ...place, userId: ownerOf(client, place) });
}

interface DeskRowProps {
  readonly line: RowLine;
  readonly isOpen: boolean;
  readonly isGone: boolean;
}

function DeskRow({ line: { row, part, approvalCount }, isOpen, isGone }: DeskRowProps) {
  const { client } = useGateway();
  return (
    <Link
      href={sessionPath(placeOf(row))}
      className={styles.row}
      data-thread={threadOf(row.sessionId)}
      data-part={part}
      data-gone={isGone || undefined}
      aria-current={isOpen ? "page" : undefined}
    >
      <span className={styles.thread} aria-hidden />
      <span className={styles.name}>
        <SessionName name={fullName(client, row)} task={taskOf(row)} />
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
