import type { Entry } from "../core/entries.ts";
import { copiedFrom, lineOf } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import type { Steps } from "../core/slices.ts";
import type { UsageReportPayload } from "../protocol/session-details.ts";

/** What answers of models came to, and how it is grouped. Pure. */

export type Figures = UsageReportPayload["total"];
export type UsageRow = UsageReportPayload["rows"][number];
export type UsageGroup = "day" | "model" | "agent";

/** What one model was asked for in a session within one quarter of an hour. */
export interface Spent extends Figures {
  /** When it began. */
  readonly quarter: number;
  /** `null`: the answers name none. */
  readonly model: string | null;
}

/** Every time zone is a whole number of these away from every other, so that no day begins inside one. */
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
 * What was spent in these entries by quarter of an hour and model: what a session's digest counts, so neither copies on another branch nor
 * what a fork took along.
 */
export function spentIn(entries: Iterable<Entry>, createdAt: number): Spent[] {
  const sums = new Map<string, Spent>();
  for (const entry of entries) {
    const spent = spentBy(entry, createdAt);
    if (spent === null) continue;
    const place = `${spent.quarter} ${spent.model ?? ""}`;
    const known = sums.get(place);
    sums.set(place, known === undefined ? spent : { ...spent, ...added(known, spent) });
  }
  return [...sums.values()];
}

function spentBy(entry: Entry, createdAt: number): Spent | null {
  if (entry.type !== "message" || entry.message.role !== "assistant") return null;
  const { usage, provider, model, skein } = entry.message;
  const time = Date.parse(entry.timestamp) || 0;
  if (usage === undefined || time < createdAt || copiedFrom(lineOf(entry)) !== null) return null;
  const totalTokens = counted(usage.totalTokens);
  const cost = skein?.costKnown === false ? undefined : usage.cost?.total;
  return {
    quarter: Math.floor(time / quarterMs) * quarterMs,
    model: provider && model ? `${provider}/${model}` : null,
    answers: 1,
    input: counted(usage.input),
    output: counted(usage.output),
    cacheRead: counted(usage.cacheRead),
    cacheWrite: counted(usage.cacheWrite),
    totalTokens,
    costUsd: Math.max(0, cost ?? 0),
    unpricedTokens: cost === undefined ? totalTokens : 0,
  };
}

/** Other programs write what they like. */
function counted(value: number | undefined): number {
  return value !== undefined && value > 0 && Number.isFinite(value) ? Math.round(value) : 0;
}

export function added(one: Figures, other: Figures): Figures {
  const names = Object.keys(noFigures) as (keyof Figures)[];
  return Object.fromEntries(names.map((name) => [name, one[name] + other[name]])) as Figures;
}

/** The rows by what they are grouped by, and their sum. Without groups the sum alone. */
export class UsageSums {
  total: Figures = noFigures;
  readonly #by: readonly UsageGroup[];
  readonly #dayOf: (time: number) => string;
  readonly #rows = new Map<string, UsageRow>();

  constructor(by: readonly UsageGroup[], timeZone?: string) {
    this.#by = by;
    this.#dayOf = daysIn(timeZone);
  }

  add(spent: Spent, agentId: string): void {
    this.total = added(this.total, spent);
    if (this.#by.length === 0) return;
    const names = {
      ...(this.#by.includes("day") ? { day: this.#dayOf(spent.quarter) } : {}),
      ...(this.#by.includes("model") && spent.model !== null ? { model: spent.model } : {}),
      ...(this.#by.includes("agent") ? { agentId } : {}),
    };
    const place = JSON.stringify(names);
    this.#rows.set(place, { ...names, ...added(this.#rows.get(place) ?? noFigures, spent) });
  }

  /** What was spent in a session, row by row. */
  *adding(spent: readonly Spent[], agentId: string): Steps<void> {
    for (const each of spent) {
      this.add(each, agentId);
      yield rowBytes;
    }
  }

  /** The earliest day first, and within a day the biggest. */
  rows(): UsageRow[] {
    return [...this.#rows.values()].sort(
      (a, b) =>
        (a.day ?? "").localeCompare(b.day ?? "") || b.costUsd - a.costUsd || b.totalTokens - a.totalTokens,
    );
  }
}

/** Which day a moment belongs to, as `YYYY-MM-DD`. */
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

/** To add a row takes as long as to read so much. */
const rowBytes = 512;

function formatFor(timeZone: string | undefined): Intl.DateTimeFormat {
  const parts = { calendar: "gregory", year: "numeric", month: "2-digit", day: "2-digit" } as const;
  try {
    return new Intl.DateTimeFormat("en-US", { ...parts, ...(timeZone === undefined ? {} : { timeZone }) });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new SkeinError(
      "invalid_arguments",
      { problem: `"${timeZone}" is no time zone`, advice: 'Give an IANA name such as "Asia/Tokyo"' },
      { cause: error },
    );
  }
}
