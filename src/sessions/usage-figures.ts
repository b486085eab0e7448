import type { Entry } from "../core/entries.ts";
import { copiedFrom, lineOf } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { Steps } from "../core/slices.ts";
import type { UsageReportPayload } from "../protocol/session-details.ts";

export type Figures = UsageReportPayload["total"];
type UsageRow = UsageReportPayload["rows"][number];
export type UsageGroup = "day" | "model" | "agent" | "user" | "session";

/** The session that used the tokens. */
export type Spender = Pick<SessionRef, "userId" | "agentId" | "key">;

/** If there are more rows than this, the smallest ones are combined into a single row. */
const maxRows = 5000;

/** One model's usage in a session within one quarter-hour. */
export interface Spent extends Figures {
  /** The start of the quarter-hour. */
  readonly quarter: number;
  /** `null` if the answers do not name their model. */
  readonly model: string | null;
}

/** Time zone offsets are multiples of this, so no day begins within a quarter-hour. */
export const quarterMs = 15 * 60_000;

export const noFigures: Figures = {
  answers: 0,
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  costUsd: 0,
  unpricedTokens: 0,
};

/**
 * Returns the usage in these entries by quarter-hour and model. Like a digest, excludes copied entries and those
 * inherited by a fork.
 */
export function spentIn(entries: Iterable<Entry>, createdAt: number): Spent[] {
  const sums = new Map<string, Spent>();
  for (const entry of entries) {
    const spent = spentBy(entry, createdAt);
    if (spent === null) continue;
    const place = `${spent.quarter} ${spent.model ?? ""}`;
    const known = sums.get(place);
    sums.set(place, known === undefined ? spent : { ...spent, ...addFigures(known, spent) });
  }
  return [...sums.values()];
}

function spentBy(entry: Entry, createdAt: number): Spent | null {
  if (entry.type !== "message" || entry.message.role !== "assistant") return null;
  const { usage, provider, model, skein } = entry.message;
  const time = Date.parse(entry.timestamp) || 0;
  if (usage === undefined || time < createdAt || copiedFrom(lineOf(entry)) !== null) return null;
  const totalTokens = tokenCount(usage.totalTokens);
  const cost = skein?.costKnown === false ? undefined : usage.cost?.total;
  return {
    quarter: Math.floor(time / quarterMs) * quarterMs,
    model: provider && model ? `${provider}/${model}` : null,
    answers: 1,
    input: tokenCount(usage.input),
    output: tokenCount(usage.output),
    cacheRead: tokenCount(usage.cacheRead),
    cacheWrite: tokenCount(usage.cacheWrite),
    totalTokens,
    costUsd: Math.max(0, cost ?? 0),
    unpricedTokens: cost === undefined ? totalTokens : 0,
  };
}

/** Returns a valid count. Files from other programs can contain invalid numbers. */
function tokenCount(value: number | undefined): number {
  return value !== undefined && value > 0 && Number.isFinite(value) ? Math.round(value) : 0;
}

function addFigures(one: Figures, other: Figures): Figures {
  const names = Object.keys(noFigures) as (keyof Figures)[];
  return Object.fromEntries(names.map((name) => [name, one[name] + other[name]])) as Figures;
}

/** Collects rows by group along with their total. If there are no groups, collects only the total. */
export class UsageSums {
  total: Figures = noFigures;
  readonly #by: readonly UsageGroup[];
  readonly #dayOf: (time: number) => string;
  readonly #rows = new Map<string, UsageRow>();

  constructor(by: readonly UsageGroup[], timeZone?: string) {
    this.#by = by;
    this.#dayOf = daysIn(timeZone);
  }

  add(spent: Spent, { userId, agentId, key }: Spender): void {
    this.total = addFigures(this.total, spent);
    if (this.#by.length === 0) return;
    const isBy = (group: UsageGroup) => this.#by.includes(group);
    const names = present({
      day: isBy("day") ? this.#dayOf(spent.quarter) : null,
      model: isBy("model") ? spent.model : null,
      agentId: isBy("agent") ? agentId : null,
      // Keys are unique only per user.
      userId: isBy("user") || isBy("session") ? userId : null,
      sessionKey: isBy("session") ? key : null,
    });
    const place = JSON.stringify(names);
    this.#rows.set(place, { ...names, ...addFigures(this.#rows.get(place) ?? noFigures, spent) });
  }

  /** Adds a session's usage row by row. */
  *adding(spent: readonly Spent[], spender: Spender): Steps<void> {
    for (const each of spent) {
      this.add(each, spender);
      yield rowBytes;
    }
  }

  /** Returns the rows ordered by day and, within a day, by descending cost. */
  rows(): UsageRow[] {
    const rows = [...this.#rows.values()].sort(bySize);
    const rest = rows.splice(rows.length > maxRows ? maxRows - 1 : maxRows);
    if (rest.length > 0) rows.push(rest.reduce<Figures>(addFigures, noFigures));
    return rows.sort((a, b) => (a.day ?? "").localeCompare(b.day ?? "") || bySize(a, b));
  }
}

function bySize(a: UsageRow, b: UsageRow): number {
  return b.costUsd - a.costUsd || b.totalTokens - a.totalTokens;
}

/** Returns a function that maps a time to its day as `YYYY-MM-DD`. */
function daysIn(timeZone: string | undefined): (time: number) => string {
  const format = formatFor(timeZone);
  const known = new Map<number, string>();
  return (time) => {
    const day = known.get(time) ?? dayIn(format, time);
    known.set(time, day);
    return day;
  };
}

function dayIn(format: Intl.DateTimeFormat, time: number): string {
  const parts = new Map(format.formatToParts(time).map(({ type, value }) => [type, value]));
  return [parts.get("year")?.padStart(4, "0"), parts.get("month"), parts.get("day")].join("-");
}

/** The cost of adding a row, in bytes read. */
const rowBytes = 512;

function formatFor(timeZone: string | undefined): Intl.DateTimeFormat {
  const parts = { calendar: "gregory", year: "numeric", month: "2-digit", day: "2-digit" } as const;
  try {
    return new Intl.DateTimeFormat("en-US", { ...parts, ...(timeZone === undefined ? {} : { timeZone }) });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new SkeinError(
      "invalid_arguments",
      { problem: `"${timeZone}" is not a valid time zone`, advice: 'Use an IANA name such as "Asia/Tokyo"' },
      { cause: error },
    );
  }
}
