import { useMemo } from "react";
import type { Params, Result } from "skein/client";
import { Link, useSearchParams } from "wouter";
import { errorText, useCall } from "../connect/gateway.tsx";
import { sessionPath } from "../session/session-place.ts";
import { Choice } from "../ui/choice.tsx";
import { Notice } from "../ui/notice.tsx";
import { Page } from "../ui/page.tsx";
import { dollars, shortCount } from "../ui/time.ts";
import styles from "./usage-page.module.css";

type Grouping = NonNullable<Params<"sessions.usage">["by"]>[number];
type UsageRow = Result<"sessions.usage">["rows"][number];

const ranges = { "7": "7 days", "30": "30 days", "90": "90 days" } as const;
const groupings: Partial<Record<Grouping, string>> = {
  model: "Model",
  agent: "Agent",
  user: "User",
  session: "Session",
};
const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** `/usage?days=&by=`: what was spent, by day in the reader's time zone and by model, agent, user or session. */
export default function UsagePage() {
  const [query, setQuery] = useSearchParams();
  const days = Number(query.get("days") ?? 30);
  const by = (query.get("by") ?? "model") as Grouping;
  const since = useMemo(() => startOfDay(days), [days]);
  const daily = useCall("sessions.usage", { since, by: ["day"], timeZone }, { keepsPrevious: true });
  const grouped = useCall("sessions.usage", { since, by: [by], timeZone }, { keepsPrevious: true });
  const change = (name: string, value: string) =>
    setQuery((before) => {
      const next = new URLSearchParams(before);
      next.set(name, value);
      return next;
    });
  const failure = daily.error ?? grouped.error;
  if (failure !== null) return <Notice text={errorText(failure)} isError />;
  if (daily.data === undefined || grouped.data === undefined) return <Notice text="Adding up…" isBusy />;
  const { total } = daily.data;
  return (
    <Page
      title="Usage"
      tools={
        <>
          <Choice
            label="Range"
            value={String(days)}
            options={ranges}
            onChange={(value) => change("days", value)}
          />
          <Choice label="By" value={by} options={groupings} onChange={(value) => change("by", value)} />
        </>
      }
    >
      <dl className={styles.totals}>
        <Figure name="Cost" value={dollars(total.costUsd)} />
        <Figure name="Tokens" value={shortCount(total.totalTokens)} />
        <Figure name="Answers" value={shortCount(total.answers)} />
        <Figure name="Without a price" value={`${shortCount(total.unpricedTokens)} tokens`} />
      </dl>
      {daily.data.indexing !== undefined && (
        <p role="status">{daily.data.indexing.behind} sessions are not counted yet.</p>
      )}
      <DayChart rows={daily.data.rows} since={since} days={days} />
      <UsageTable rows={grouped.data.rows} by={by} />
    </Page>
  );
}

function startOfDay(days: number): number {
  const start = new Date();
  start.setHours(0, 0, 0, 0);
  start.setDate(start.getDate() - days + 1);
  return start.getTime();
}

function Figure({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** One bar a day. Tokens without a price are hatched, because they have no cost to add. */
function DayChart({
  rows,
  since,
  days,
}: {
  readonly rows: readonly UsageRow[];
  readonly since: number;
  readonly days: number;
}) {
  const byDay = new Map(rows.map((row) => [row.day, row]));
  const all = Array.from({ length: days }, (_, index) => {
    const date = new Date(since);
    date.setDate(date.getDate() + index);
    const day = `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
    return { day, row: byDay.get(day) };
  });
  const most = Math.max(1, ...rows.map((row) => row.totalTokens));
  const width = 100 / days;
  return (
    <figure className={styles.chart}>
      <svg
        viewBox="0 0 100 30"
        preserveAspectRatio="none"
        role="img"
        aria-label="Tokens by day; the table below has the figures"
      >
        <defs>
          <pattern
            id="unpriced"
            width="1"
            height="1"
            patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)"
          >
            <rect width="0.5" height="1" className={styles.hatch} />
          </pattern>
        </defs>
        {all.map(({ day, row }, index) => {
          if (row === undefined) return null;
          const height = (row.totalTokens / most) * 29;
          const unpriced = (row.unpricedTokens / most) * 29;
          const x = index * width + width * 0.12;
          return (
            <g key={day}>
              <title>{`${day}: ${row.totalTokens.toLocaleString("en")} tokens, ${dollars(row.costUsd)}`}</title>
              <rect className={styles.bar} x={x} y={30 - height} width={width * 0.76} height={height} />
              <rect fill="url(#unpriced)" x={x} y={30 - unpriced} width={width * 0.76} height={unpriced} />
            </g>
          );
        })}
      </svg>
      <figcaption>
        <span>{all[0]?.day}</span>
        <span>{all.at(-1)?.day}</span>
      </figcaption>
    </figure>
  );
}

function UsageTable({ rows, by }: { readonly rows: readonly UsageRow[]; readonly by: Grouping }) {
  if (rows.length === 0) return <p>Nothing was spent in this time.</p>;
  return (
    <table className={styles.table}>
      <thead>
        <tr>
          <th>{groupings[by]}</th>
          <th>Answers</th>
          <th>Input</th>
          <th>Output</th>
          <th>Cache read</th>
          <th>Tokens</th>
          <th>Cost</th>
          <th>Without a price</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={nameOf(row, by)}>
            <th scope="row">{linkOf(row, by)}</th>
            {[row.answers, row.input, row.output, row.cacheRead, row.totalTokens].map((value, index) => (
              <td key={index}>{value.toLocaleString("en")}</td>
            ))}
            <td>{dollars(row.costUsd)}</td>
            <td>{row.unpricedTokens === 0 ? "" : row.unpricedTokens.toLocaleString("en")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function nameOf(row: UsageRow, by: Grouping): string {
  return (
    { model: row.model, agent: row.agentId, user: row.userId, session: row.sessionKey, day: row.day }[by] ??
    "unnamed"
  );
}

/** A row opens the sessions behind it. */
function linkOf(row: UsageRow, by: Grouping) {
  const name = nameOf(row, by);
  if (by === "session" && row.sessionKey !== undefined)
    return <Link href={sessionPath({ key: row.sessionKey })}>{name}</Link>;
  if (by === "day") return name;
  const query = new URLSearchParams({ [by]: name });
  return <Link href={`/sessions?${query.toString()}`}>{name}</Link>;
}
