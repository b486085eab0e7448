import type { Range } from "@tanstack/react-virtual";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { useMemo } from "react";
import { Link } from "wouter";
import { useConnectionState, useGateway } from "../connect/gateway.tsx";
import { useSessionRow } from "../frame.tsx";
import type { Desk, DeskState } from "../live/desk.ts";
import { fullName, kindWord, rowName, stateWord, taskOf } from "../live/session-row.ts";
import { placeOf, sessionPath, userParam } from "../paths.ts";
import { useAnswerKeys } from "../runs/approval-actions.tsx";
import { ApprovalQuestion } from "../runs/approval-question.tsx";
import buttons from "../ui/button.module.css";
import { useKeys } from "../ui/keys.tsx";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { useRoving } from "../ui/roving.ts";
import type { Selection } from "../ui/selection.tsx";
import { FullName, SessionName } from "../ui/session-head.tsx";
import { FreshRows } from "../ui/steady.tsx";
import { rowHeight, threadOf } from "../ui/theme.ts";
import { dollars, fullTime, shortCount, shortTime } from "../ui/time.ts";
import type { DeskView, RowLine } from "./desk-lines.ts";
import { useLoadMore } from "./desk-list.tsx";
import styles from "./desk-table.module.css";

interface DeskTableProps {
  readonly desk: Desk;
  readonly state: DeskState;
  readonly view: DeskView;
  readonly selection: Selection;
  readonly isFiltered: boolean;
}

/**
 * Sessions and their approvals as rows. One row can have the focus. Arrow keys move the focus, Enter opens the row, and
 * `x` selects it.
 */
export function DeskTable({ desk, state, view, selection, isFiltered }: DeskTableProps) {
  const { status, error, hasMore } = state;
  const { lines, steady } = view;
  const ids = useMemo(() => lines.flatMap(({ kind, id }) => (kind === "head" ? [] : [id])), [lines]);
  const roving = useRoving(ids, (id) => list.scrollToIndex(indexOf(id)));
  const indexOf = (id: string | null) => lines.findIndex((line) => line.id === id);
  const list = useVirtualizer({
    count: lines.length,
    getScrollElement: () => roving.list.current,
    estimateSize: rowHeight,
    getItemKey: (index) => lines[index]?.id ?? index,
    overscan: 12,
    // The focused row stays mounted so that scrolling does not lose the focus.
    rangeExtractor: (range: Range) => {
      const stop = indexOf(roving.stop);
      return [...new Set([...defaultRangeExtractor(range), ...(stop < 0 ? [] : [stop])])].sort(
        (a, b) => a - b,
      );
    },
  });
  const items = list.getVirtualItems();
  const last = list.range?.endIndex;
  useLoadMore(hasMore && error === null, last, lines.length, state.rows.length, () => desk.loadMore());
  const at = indexOf(roving.stop);
  const current = lines[at];
  // A session's approvals follow its row.
  const asked = [current, lines[at + 1]].find((line) => line?.kind === "approval")?.id ?? null;
  useAnswerKeys(roving.list, asked);
  useKeys({ x: current?.kind === "row" ? () => selection.toggle(current.id) : null });

  if (status === "failed" && error !== null)
    return <ErrorNotice error={error} onRetry={() => void desk.reload()} />;
  if (status === "loading") return <Notice text="Loading…" isBusy />;
  if (lines.length === 0) {
    return (
      <Notice
        text={
          isFiltered
            ? "No sessions match these filters."
            : "There are no sessions yet. To create one, send a message to main."
        }
      />
    );
  }
  return (
    <div className={styles.table} onKeyDown={roving.onKeyDown} {...steady.hold}>
      <FreshRows steady={steady} />
      <ColumnNames />
      <div ref={roving.list} className={styles.scroller}>
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
                  <h2 className={styles.head} data-part={line.part}>
                    {line.name} <span>{line.count.toLocaleString("en")}</span>
                  </h2>
                )}
                {line.kind === "row" && (
                  <TableRow
                    line={line}
                    isSelected={selection.ids.has(line.id)}
                    isGone={steady.isGone(line.id)}
                    focus={roving.item(line.id)}
                    onToggle={() => selection.toggle(line.id)}
                  />
                )}
                {line.kind === "approval" && (
                  <ApprovalQuestion
                    approval={line.approval}
                    isGone={steady.isGone(line.id)}
                    hasKeys={line.id === asked}
                    focus={roving.item(line.id)}
                  />
                )}
              </li>
            );
          })}
        </ul>
      </div>
      <ReadError error={error} onRetry={() => void desk.reload()} />
    </div>
  );
}

/** Visual only. The text of the cells is clear without it. */
function ColumnNames() {
  return (
    <div className={`${styles.row} ${styles.columns}`} aria-hidden>
      <span className={styles.name}>Session</span>
      <span className={styles.parent}>Spawned by</span>
      <span className={styles.channel}>Kind</span>
      <span>State</span>
      <span className={styles.figure}>Tokens</span>
      <span className={styles.figure}>Cost</span>
      <span className={styles.time}>Active</span>
    </div>
  );
}

/**
 * The rows stay visible but might be outdated. While the gateway is offline, another part of the page says so instead.
 */
function ReadError({ error, onRetry }: { readonly error: string | null; readonly onRetry: () => void }) {
  const connection = useConnectionState();
  if (error === null || connection !== "open") return null;
  return (
    <p className={styles.error} role="alert">
      {error}{" "}
      <button type="button" className={buttons.button} onClick={onRetry}>
        Retry
      </button>
    </p>
  );
}

interface TableRowProps {
  readonly line: RowLine;
  readonly isSelected: boolean;
  readonly isGone: boolean;
  readonly focus: ReturnType<ReturnType<typeof useRoving>["item"]>;
  readonly onToggle: () => void;
}

function TableRow({ line: { row, part }, isSelected, isGone, focus, onToggle }: TableRowProps) {
  const { client } = useGateway();
  const { spawnedBy } = row;
  const parent = useSessionRow(spawnedBy === undefined ? null : { key: spawnedBy, ...userParam(row) });
  return (
    <div
      className={styles.row}
      data-thread={threadOf(row.sessionId)}
      data-part={part}
      data-selected={isSelected || undefined}
      data-gone={isGone || undefined}
    >
      <input
        type="checkbox"
        checked={isSelected}
        disabled={isGone}
        onChange={onToggle}
        tabIndex={-1}
        aria-label={`Select ${fullName(client, row)}`}
      />
      <span className={styles.thread} data-kind={row.kind} aria-hidden />
      <Link href={sessionPath(placeOf(row))} className={styles.name} {...focus}>
        <SessionName name={<FullName row={row} />} task={taskOf(row)} />
      </Link>
      <span className={styles.parent}>
        {spawnedBy !== undefined && (
          <>
            <span className="visually-hidden">spawned by </span>
            <bdi>{rowName(parent ?? { key: spawnedBy })}</bdi>
          </>
        )}
      </span>
      <span className={styles.channel}>{row.channel === "unknown" ? kindWord(row) : row.channel}</span>
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
