import type { ReactNode } from "react";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { rowName, taskOf } from "../live/session-row.ts";
import type { SessionPlace } from "../paths.ts";
import { sessionPath, userParam } from "../paths.ts";
import buttons from "../ui/button.module.css";
import { oneLine } from "../ui/plain-text.ts";
import { previewLine } from "../ui/preview.ts";
import { threadOf } from "../ui/theme.ts";
import { duration } from "../ui/time.ts";
import type { Family } from "./family-data.ts";
import { edgeNames, edgePath, findTones, orderMembers, toneNames, toneOf } from "./family-data.ts";
import styles from "./family-table.module.css";

interface Cell {
  readonly value: string | number;
  readonly shown: ReactNode;
  readonly tone?: string;
}

interface Sorting {
  readonly column: number;
  readonly isDown: boolean;
}

/** The same data as the lanes in tables: sessions, runs, and messages between sessions. */
export function FamilyTable({
  family,
  place,
  needsYou,
}: {
  readonly family: Family;
  readonly place: SessionPlace;
  readonly needsYou: ReadonlySet<string>;
}) {
  const tables = useMemo(() => {
    const user = userParam(place);
    const tones = findTones(family, needsYou);
    const members = new Map(family.nodes.map((member) => [member.key, member]));
    const session = (key: string): Cell => {
      const member = members.get(key);
      if (member === undefined) return text(oneLine(key, 100));
      const name = rowName(member);
      const shown = (
        <span className={styles.session} data-thread={threadOf(member.sessionId)}>
          <Link href={sessionPath({ key, ...user })}>{name}</Link>
        </span>
      );
      return { value: name, shown };
    };
    return {
      sessions: orderMembers(family).map(({ member }) => {
        const { key, kind, agentId, parentKey, createdAt, updatedAt } = member;
        const tone = tones.get(key);
        return [
          session(key),
          text(taskOf(member)),
          tone === undefined ? text("No runs") : { value: toneNames[tone], shown: toneNames[tone], tone },
          text(parentKey === undefined ? kind : "sub-agent"),
          text(oneLine(agentId, 60)),
          parentKey === undefined ? text("") : session(parentKey),
          time(createdAt),
          time(updatedAt),
        ];
      }),
      runs: family.spans.map((span): Cell[] => {
        const tone = toneOf(span, needsYou);
        const { key, createdAt, startedAt, endedAt } = span;
        const ms = endedAt === undefined || startedAt === undefined ? null : endedAt - startedAt;
        return [
          session(key),
          { value: toneNames[tone], shown: toneNames[tone], tone },
          time(createdAt),
          { value: ms ?? -1, shown: ms === null ? "" : duration(ms) },
          text(previewLine(span.preview, 160)),
        ];
      }),
      messages: family.edges.map((edge): Cell[] => [
        text(edgeNames[edge.kind]),
        session(edge.fromKey),
        session(edge.toKey),
        time(edge.at),
        {
          value: edge.preview,
          shown: <Link href={edgePath(edge, place)}>{previewLine(edge.preview, 160) || "Open"}</Link>,
        },
      ]),
    };
  }, [family, place, needsYou]);
  return (
    <div className={styles.page}>
      <SortedTable
        name="Sessions"
        columns={["Session", "Task", "State", "Kind", "Agent", "Parent", "Created", "Active"]}
        rows={tables.sessions}
      />
      <SortedTable
        name="Runs"
        columns={["Session", "State", "Created", "Took", "Input"]}
        rows={tables.runs}
      />
      <SortedTable
        name="Between sessions"
        columns={["Kind", "From", "To", "Time", "Text"]}
        rows={tables.messages}
      />
    </div>
  );
}

const exact = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

function text(value: string): Cell {
  return { value, shown: value };
}

function time(at: number): Cell {
  return { value: at, shown: <time dateTime={new Date(at).toISOString()}>{exact.format(at)}</time> };
}

const pageSize = 300;

function SortedTable({
  name,
  columns,
  rows,
}: {
  readonly name: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}) {
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const [count, setCount] = useState(pageSize);
  const sorted = useMemo(() => {
    if (sorting === null) return rows;
    const { column, isDown } = sorting;
    return rows.toSorted(
      (a, b) => compare(a[column]?.value ?? "", b[column]?.value ?? "") * (isDown ? -1 : 1),
    );
  }, [rows, sorting]);
  return (
    <section className={styles.part} aria-label={name}>
      <h2>
        {name} <span className={styles.count}>{rows.length}</span>
      </h2>
      {rows.length === 0 ? (
        <p className={styles.empty}>None.</p>
      ) : (
        <div data-scroll-cue className={styles.scroller}>
          <table className={styles.table}>
            <thead>
              <tr>
                {columns.map((title, column) => {
                  const isSorted = sorting?.column === column;
                  const direction = sorting?.isDown === true ? "descending" : "ascending";
                  return (
                    <th key={title} aria-sort={isSorted ? direction : "none"}>
                      <button
                        type="button"
                        onClick={() => setSorting({ column, isDown: isSorted && !sorting.isDown })}
                      >
                        {title}
                        <span aria-hidden>{isSorted ? (sorting.isDown ? " ↓" : " ↑") : ""}</span>
                      </button>
                    </th>
                  );
                })}
              </tr>
            </thead>
            <tbody>
              {sorted.slice(0, count).map((cells, row) => (
                <tr key={row}>
                  {cells.map(({ shown, tone }, column) => (
                    <td key={columns[column]} data-tone={tone}>
                      {shown}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {rows.length > count && (
        <button
          type="button"
          className={`${buttons.button} ${styles.more}`}
          onClick={() => setCount(count + pageSize)}
        >
          Show {Math.min(pageSize, rows.length - count)} more
        </button>
      )}
    </section>
  );
}

function compare(a: string | number, b: string | number): number {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
