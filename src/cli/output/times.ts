import { SkeinError } from "../../core/errors.ts";

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** A time as people type it: a date, a date with a time, or a span back from now. */
export function timeOf(text: string, now: number): number {
  const [, amount, unit = ""] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  if (amount !== undefined) return now - Number(amount) * (units[unit] ?? 0);
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) {
    throw new SkeinError("invalid_arguments", {
      problem: `"${text}" is no time`,
      advice: "Use a date such as 2026-03-01 or 2026-03-01T18:00, or a span such as 90m, 24h, 7d, 2w",
    });
  }
  return time;
}

/** Day and minute, in UTC. */
export function shownTime(time: number): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 16).replace("T", " ");
}
