import { useMemo } from "react";
import type { Params, Result } from "skein/client";
import { Link } from "wouter";
import { useCall, useGateway } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { usagePath, usersParam } from "../paths.ts";
import { Choice } from "../ui/choice.tsx";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { Page } from "../ui/page.tsx";
import { useQueryFields } from "../ui/query-fields.ts";
import { dollars, shortCount, shortDay } from "../ui/time.ts";
import styles from "./usage-page.module.css";
import { UsageTable } from "./usage-table.tsx";

export type UsageRow = Result<"sessions.usage">["rows"][number];
export type Grouping = "model" | "agent" | "user" | "session";

/** The filter for the table: the sessions behind one bar or row. */
export interface Part {
  readonly group: Exclude<Grouping, "session"> | "day";
  /** Empty for the unnamed user. */
  readonly value: string;
}

const ranges = { "7": "7 days", "30": "30 days", "90": "90 days" } as const;
const groupings: Readonly<Record<Grouping, string>> = {
  model: "Model",
  agent: "Agent",
  user: "User",
  session: "Session",
};
const parts = ["day", "model", "agent", "user"] as const;
const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/**
 * `/usage?days=&by=`: usage by day in the user's time zone, and by model, agent, user or session. With `day`, `model`,
 * `agent` or `user`, also the sessions that account for that usage.
 */
export default function UsagePage() {
  const { client } = useGateway();
  const [query, change] = useQueryFields();
  const days = oneOf(query.get("days"), ranges, "30");
  const part = readPart(query);
  const by = part === null ? oneOf(query.get("by"), groupings, "model") : "session";
  const start = startOfDay(Number(days));
  const since = start.getTime();
  const { error, daily, rows } = useUsage(since, by, part);
  const { user, ...forOneUser } = groupings;
  const options = client.hello.allUsers ? groupings : forOneUser;
  const here = { days: query.get("days") ?? undefined };
  return (
    <Page
      title="Usage"
      tools={
        <>
          <Choice
            label="Range"
            value={days}
            options={ranges}
            onChange={(value) => change({ days: value, day: null })}
          />
          <Choice
            label="By"
            value={by}
            options={options}
            onChange={(value) => change({ by: value, day: null, model: null, agent: null, user: null })}
          />
        </>
      }
    >
      {error !== null && <ErrorNotice error={error} />}
      {error === null && (daily === undefined || rows === undefined) && (
        <Notice text="Loading usage…" isBusy />
      )}
      {daily !== undefined && rows !== undefined && (
        <>
          <dl className={styles.totals}>
            <Figure name="Cost" value={dollars(daily.total.costUsd)} />
            <Figure name="Tokens" value={shortCount(daily.total.totalTokens)} />
            <Figure name="Answers" value={shortCount(daily.total.answers)} />
            <Figure name="Unpriced" value={`${shortCount(daily.total.unpricedTokens)} tokens`} />
          </dl>
          {daily.indexing !== undefined && (
            <p role="status">{daily.indexing.behind} sessions are not counted yet.</p>
          )}
          <DayChart
            rows={daily.rows}
            days={daysFrom(start, Number(days))}
            shown={part?.group === "day" ? part.value : null}
            hrefOf={(day) => usagePath({ ...here, day })}
          />
          <p className={styles.zone}>
            Days begin at midnight in your time zone, {timeZone}. Today is{" "}
            {shortDay(dayAfter(start, Number(days) - 1))}.
          </p>
          {part !== null && (
            <h2 className={styles.part}>
              Sessions: {part.value === "" ? "default user" : part.value}{" "}
              <Link href={usagePath({ ...here, by: part.group === "day" ? undefined : part.group })}>
                Show all
              </Link>
            </h2>
          )}
          <UsageTable
            rows={rows}
            by={by}
            name={groupings[by]}
            hrefOf={(group, value) => usagePath({ ...here, [group]: value })}
          />
        </>
      )}
    </Page>
  );
}

function useUsage(since: number, by: Grouping, part: Part | null) {
  const { client } = useGateway();
  useRefresh(["sessions.usage"], ({ event }) => event === "run.ended");
  const users = usersParam(client);
  const day = part?.group === "day" ? new Date(`${part.value}T00:00`) : null;
  const range = day === null ? { since } : { since: day.getTime(), until: dayAfter(day, 1).getTime() };
  const groups: Params<"sessions.usage">["by"] =
    part === null || part.group === "day" ? [by] : [by, part.group];
  const daily = useCall(
    "sessions.usage",
    { since, by: ["day"], timeZone, ...users },
    { keepsPrevious: true },
  );
  const grouped = useCall("sessions.usage", { ...range, by: groups, timeZone, ...users });
  const rows = useMemo(
    () => grouped.data?.rows.filter((row) => part === null || isOfPart(row, part)),
    [grouped.data, part?.group, part?.value],
  );
  return { error: daily.error ?? grouped.error, daily: daily.data, rows };
}

function isOfPart({ model, agentId, userId }: UsageRow, { group, value }: Part): boolean {
  if (group === "day") return true;
  return ({ model, agent: agentId, user: userId }[group] ?? "") === value;
}

function readPart(query: URLSearchParams): Part | null {
  for (const group of parts) {
    const value = query.get(group);
    if (value === null || (group === "day" && !/^\d{4}-\d\d-\d\d$/.test(value))) continue;
    return { group, value };
  }
  return null;
}

function oneOf<T extends string>(value: string | null, known: Readonly<Record<T, string>>, otherwise: T): T {
  return value !== null && Object.hasOwn(known, value) ? (value as T) : otherwise;
}

function startOfDay(days: number): Date {
  const start = new Date();
  start.setHours(0, 0, 0, 0);
  return dayAfter(start, 1 - days);
}

/** Based on the calendar, because not every day has 24 hours. */
function dayAfter(day: Date, count: number): Date {
  const after = new Date(day);
  after.setDate(after.getDate() + count);
  return after;
}

/** Returns `YYYY-MM-DD` for each day in the range. */
function daysFrom(start: Date, count: number): readonly string[] {
  const two = (value: number) => String(value).padStart(2, "0");
  return Array.from({ length: count }, (_, index) => {
    const date = dayAfter(start, index);
    return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  });
}

function Figure({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

interface DayChartProps {
  readonly rows: readonly UsageRow[];
  readonly days: readonly string[];
  readonly shown: string | null;
  readonly hrefOf: (day: string) => string;
}

/**
 * One bar per day, which opens that day's sessions. Tokens without a price are hatched, because they add nothing to the
 * cost.
 */
function DayChart({ rows, days, shown, hrefOf }: DayChartProps) {
  const byDay = new Map(rows.map((row) => [row.day, row]));
  // At least 10, so that half of the scale is also a round number.
  const top = roundTop(Math.max(10, ...rows.map((row) => row.totalTokens)));
  return (
    <figure className={styles.chart}>
      <div className={styles.scale} aria-hidden>
        {[top, top / 2].map((tokens) => (
          <span key={tokens}>{shortCount(tokens)}</span>
        ))}
      </div>
      <ol className={styles.days} aria-label="Tokens by day">
        {days.map((day) => {
          const row = byDay.get(day);
          if (row === undefined) return <li key={day} aria-hidden />;
          const { totalTokens: tokens, unpricedTokens: unpriced } = row;
          const text = `${day}: ${tokens.toLocaleString("en")} tokens, ${dollars(row.costUsd)}`;
          const note = unpriced === 0 ? text : `${text}, ${unpriced.toLocaleString("en")} without a price`;
          return (
            <li key={day}>
              <Link
                href={hrefOf(day)}
                className={styles.day}
                aria-label={note}
                title={note}
                aria-current={day === shown ? "true" : undefined}
              >
                <span className={styles.bar} style={{ height: `${(100 * tokens) / top}%` }}>
                  <span
                    className={styles.unpriced}
                    style={{ height: `${(100 * unpriced) / Math.max(1, tokens)}%` }}
                  />
                </span>
              </Link>
            </li>
          );
        })}
      </ol>
      <figcaption className={styles.dates}>
        {days.map((day, index) => (
          <span key={day}>
            {(days.length - 1 - index) % Math.ceil(days.length / 4) === 0 &&
              shortDay(new Date(`${day}T00:00`))}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

/** Returns the next of 10, 20, 50, 100, …, so that the scale has round numbers. */
function roundTop(tokens: number): number {
  const unit = 10 ** Math.floor(Math.log10(tokens));
  return [1, 2, 5, 10].map((factor) => factor * unit).find((top) => top >= tokens) ?? tokens;
}
