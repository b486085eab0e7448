const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const dayOfYear = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "numeric",
  minute: "2-digit",
});
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const hourMs = 3_600_000;

/** Returns the clock time for today and the last 12 hours, otherwise the day. */
export function shortTime(at: number, now = Date.now()): string {
  const isLastNight = at <= now && now - at < 12 * hourMs;
  return isSameDay(at, now) || isLastNight ? clock.format(at) : shortDay(new Date(at), new Date(now));
}

/** Returns the clock time for today, the day and the clock time for the last week, otherwise the day. */
export function entryTime(at: number, now = Date.now()): string {
  const isRecent = now - at < 7 * 24 * hourMs && !isSameDay(at, now);
  return isRecent ? dayAndClock.format(at) : shortTime(at, now);
}

function isSameDay(one: number, other: number): boolean {
  return new Date(one).toDateString() === new Date(other).toDateString();
}

/** Formats Nov 17, with the year unless it is the current one. */
export function shortDay(date: Date, today = new Date()): string {
  return (date.getFullYear() === today.getFullYear() ? day : dayOfYear).format(date);
}

export function fullTime(at: number): string {
  return full.format(at);
}

/** Formats 850 ms, 3.2 s, 4 min, 2 h, 3 d. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

/** Formats now, 3 min ago, 2 h ago. */
export function ago(at: number, now = Date.now()): string {
  const passed = now - at;
  return passed < 10_000 ? "now" : `${duration(passed)} ago`;
}

/** Formats 950, 12.3k, 1.2M. */
export function shortCount(value: number): string {
  if (value < 1000) return String(Math.round(value));
  if (value < 1_000_000) return `${trim(value / 1000)}k`;
  return `${trim(value / 1_000_000)}M`;
}

interface Usage {
  readonly input?: number | undefined;
  readonly output?: number | undefined;
  readonly cacheRead?: number | undefined;
  readonly cacheWrite?: number | undefined;
}

/**
 * Formats a request's tokens as counted by its provider, including cached ones. The wording is the same wherever a
 * request appears.
 */
export function usageText(usage: Usage): string {
  return `${shortCount(requestTokens(usage))} in · ${shortCount(usage.output ?? 0)} out`;
}

export function requestTokens({ input = 0, cacheRead = 0, cacheWrite = 0 }: Usage): number {
  return input + cacheRead + cacheWrite;
}

export function dollars(value: number): string {
  if (value === 0) return "$0";
  return value < 0.01
    ? "<$0.01"
    : `$${value < 100 ? value.toFixed(2) : Math.round(value).toLocaleString("en")}`;
}

function trim(value: number): string {
  return value < 100 ? value.toFixed(1).replace(/\.0$/, "") : String(Math.round(value));
}
