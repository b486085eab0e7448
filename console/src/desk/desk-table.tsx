import { useVirtualizer } from "@tanstack/react-virtual";
import type { KeyboardEvent } from "react";
import { useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import type { DeskState, SessionRow } from "../live/desk.ts";
import { idOf, rowName } from "../live/desk.ts";
import { ApprovalActions } from "../runs/approval-actions.tsx";
import { sessionPath } from "../session/session-place.ts";
import { hasLetterKeys, isTyping } from "../ui/keys.ts";
import { Notice } from "../ui/notice.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { threadOf } from "../ui/thread.ts";
import { dollars, fullTime, shortCount, shortTime } from "../ui/time.ts";
import type { Line } from "./desk-lines.ts";
import { deskLines, useSteadyLines } from "./desk-lines.ts";
import styles from "./desk-table.module.css";

interface DeskTableProps {
  readonly state: DeskState;
  readonly loadMore: () => void;
  readonly selected: ReadonlySet<string>;
  readonly onSelect: (selected: ReadonlySet<string>) => void;
  readonly isFiltered: boolean;
}

/** Sessions in rows. One row takes the focus; arrows move it, Enter opens it, `x` selects it. */
export function DeskTable({ state, loadMore, selected, onSelect, isFiltered }: DeskTableProps) {
  const { rows, approvals, status, error, hasMore } = state;
  const [isHeld, setIsHeld] = useState(false);
  const lines = useSteadyLines(
    useMemo(() => deskLines(rows, approvals, true), [rows, approvals]),
    isHeld,
  );
  const [focused, setFocused] = useState<string | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const rowHeight = useRowHeight();
  const list = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => lines[index]?.id ?? index,
    overscan: 12,
  });
  const items = list.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  if (hasMore && last >= lines.length - 20 && lines.length > 0) queueMicrotask(loadMore);

  const move = (by: number) => {
    const places = lines.flatMap((line, index) => (line.kind === "row" ? [index] : []));
    const now = places.findIndex((index) => lines[index]?.id === focused);
    const next = places[Math.max(0, Math.min(places.length - 1, now + by))];
    if (next === undefined) return;
    const id = lines[next]?.id ?? null;
    setFocused(id);
    list.scrollToIndex(next);
    // The row may be mounted only after the scroll.
    requestAnimationFrame(() =>
      scroller.current?.querySelector<HTMLElement>(`[data-line="${CSS.escape(id ?? "")}"]`)?.focus(),
    );
  };
  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    onSelect(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      isTyping(event) ||
      event.target instanceof HTMLButtonElement
    )
      return;
    const act = keyActions[event.key];
    if (act === undefined || (event.key.length === 1 && !hasLetterKeys())) return;
    event.preventDefault();
    if (act === "toggle") {
      if (focused !== null) toggle(focused);
    } else move(act);
  };

  if (status === "failed") return <Notice text={error ?? "The sessions cannot be read."} isError />;
  if (status === "loading") return <Notice text="Reading the sessions…" isBusy />;
  if (rows.length === 0) {
    return (
      <Notice
        text={
          isFiltered
            ? "No session matches these filters."
            : "There is no session yet. A message to main creates one."
        }
      />
    );
  }
  return (
    <div
      ref={scroller}
      className={styles.scroller}
      onPointerEnter={() => setIsHeld(true)}
      onPointerLeave={() => setIsHeld(false)}
      onKeyDown={onKeyDown}
    >
      <ul className={styles.list} aria-label="Sessions" style={{ height: list.getTotalSize() }}>
        {items.map((item) => {
          const line = lines[item.index];
          if (line === undefined) return null;
          return (
            <li
              key={item.key}
              ref={list.measureElement}
              data-index={item.index}
              className={styles.item}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {line.kind === "head" && (
                <h2 className={styles.head} data-part={line.id}>
                  {line.name} <span>{line.count.toLocaleString("en")}</span>
                </h2>
              )}
              {line.kind === "row" && (
                <TableRow
                  line={line}
                  isSelected={selected.has(line.id)}
                  isFocusable={line.id === focused || (focused === null && item.index === 1)}
                  onFocus={() => setFocused(line.id)}
                  onToggle={() => toggle(line.id)}
                />
              )}
              {line.kind === "approval" && <ApprovalLine line={line} />}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

const keyActions: Readonly<Record<string, number | "toggle">> = {
  ArrowDown: 1,
  j: 1,
  ArrowUp: -1,
  k: -1,
  PageDown: 15,
  PageUp: -15,
  Home: -Number.MAX_SAFE_INTEGER,
  End: Number.MAX_SAFE_INTEGER,
  x: "toggle",
};

function useRowHeight(): number {
  const [height] = useState(() => (matchMedia("(pointer: coarse)").matches ? 44 : 28));
  return height;
}

interface TableRowProps {
  readonly line: Extract<Line, { kind: "row" }>;
  readonly isSelected: boolean;
  readonly isFocusable: boolean;
  readonly onFocus: () => void;
  readonly onToggle: () => void;
}

function TableRow({ line, isSelected, isFocusable, onFocus, onToggle }: TableRowProps) {
  const { row, part } = line;
  const { key, userId } = row;
  const place = { key, ...(userId === undefined ? {} : { userId }) };
  return (
    <div
      className={styles.row}
      data-thread={threadOf(row.sessionId)}
      data-part={part}
      data-selected={isSelected || undefined}
    >
      <input
        type="checkbox"
        checked={isSelected}
        onChange={onToggle}
        tabIndex={-1}
        aria-label={`Select ${rowName(row)}`}
      />
      <span className={styles.thread} data-kind={row.kind} aria-hidden />
      <Link
        href={sessionPath(place)}
        className={styles.name}
        tabIndex={isFocusable ? 0 : -1}
        data-line={idOf(row)}
        onFocus={onFocus}
      >
        {rowName(row)}
      </Link>
      <span className={styles.parent}>
        {row.spawnedBy === undefined ? "" : `from ${rowName({ key: row.spawnedBy })}`}
      </span>
      <span className={styles.channel}>{row.channel === "unknown" ? row.kind : row.channel}</span>
      <span className={styles.state} data-state={row.status ?? "idle"}>
        {stateWord(row)}
      </span>
      <span className={styles.figure}>
        {row.totalTokens === undefined ? "" : shortCount(row.totalTokens)}
      </span>
      <span className={styles.figure}>
        {row.estimatedCostUsd === undefined ? "" : dollars(row.estimatedCostUsd)}
      </span>
      <time className={styles.time} title={fullTime(row.updatedAt)}>
        {shortTime(row.updatedAt)}
      </time>
    </div>
  );
}

function stateWord({ status }: SessionRow): string {
  if (status === undefined || status === "idle") return "";
  return {
    queued: "queued",
    running: "working",
    waiting: "waits",
    error: "failed",
    timeout: "timed out",
    aborted: "stopped",
  }[status];
}

/** The question that a session below asks, with the way to it from the root. */
function ApprovalLine({ line: { approval } }: { readonly line: Extract<Line, { kind: "approval" }> }) {
  const { path, toolName, arguments: args } = approval;
  const user = approval.userId === undefined ? {} : { userId: approval.userId };
  return (
    <div className={styles.approval}>
      <span className={styles.path}>
        {path.map(({ key, label }, index) => (
          <span key={key}>
            {index > 0 && " › "}
            <Link href={sessionPath({ key, ...user })}>
              {rowName({ key, ...(label === undefined ? {} : { label }) })}
            </Link>
          </span>
        ))}
      </span>
      <span className={styles.call}>
        <b>{oneLine(toolName, 60)}</b> {oneLine(JSON.stringify(args), 160)}
      </span>
      <ApprovalActions approval={approval} />
    </div>
  );
}
