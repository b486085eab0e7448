import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { useDesk } from "../frame.tsx";
import { rowName } from "../live/desk.ts";
import { sessionPath } from "../session/session-place.ts";
import { threadOf } from "../ui/thread.ts";
import { shortTime } from "../ui/time.ts";
import type { Line } from "./desk-lines.ts";
import { deskLines, useSteadyLines } from "./desk-lines.ts";
import styles from "./desk-list.module.css";

/** The sessions at the side of every page. */
export function DeskList() {
  const { rows, approvals, status, error, hasMore, desk } = useDesk();
  const [isHeld, setIsHeld] = useState(false);
  const lines = useSteadyLines(
    useMemo(() => deskLines(rows, approvals), [rows, approvals]),
    isHeld,
  );
  const [path] = useLocation();
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 28,
    getItemKey: (index) => lines[index]?.id ?? index,
    overscan: 12,
  });
  const items = list.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  if (hasMore && last >= lines.length - 20 && lines.length > 0) queueMicrotask(() => void desk.loadMore());
  if (status === "failed") return <p className={styles.notice}>{error}</p>;
  return (
    <div
      ref={scroller}
      className={styles.scroller}
      onPointerEnter={() => setIsHeld(true)}
      onPointerLeave={() => setIsHeld(false)}
    >
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
                <DeskRow line={line} isOpen={path.startsWith(`/s/${encodeURIComponent(line.row.key)}`)} />
              ) : null}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function DeskRow({
  line,
  isOpen,
}: {
  readonly line: Extract<Line, { kind: "row" }>;
  readonly isOpen: boolean;
}) {
  const { row, part, approvals } = line;
  const { key, userId } = row;
  return (
    <Link
      href={sessionPath({ key, ...(userId === undefined ? {} : { userId }) })}
      className={styles.row}
      data-thread={threadOf(row.sessionId)}
      data-part={part}
      aria-current={isOpen ? "page" : undefined}
    >
      <span className={styles.thread} aria-hidden />
      <span className={styles.name}>{rowName(row)}</span>
      {approvals > 0 ? (
        <span className={styles.alarm}>{approvals === 1 ? "approve" : `${approvals} to approve`}</span>
      ) : (
        <time className={styles.time}>{row.status === "running" ? "…" : shortTime(row.updatedAt)}</time>
      )}
    </Link>
  );
}
