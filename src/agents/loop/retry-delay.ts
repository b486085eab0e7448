/** How long to wait before a model is asked again. */

const base = 1000;
const most = 30_000;
/** Whatever a server asks for: nobody waits longer for it. */
export const mostRetryAfter = 120_000;

/** What the server asked for, else exponential with full jitter. `retry` counts from 1. */
export function retryDelay(retry: number, retryAfterMs: number | null, random: () => number): number {
  if (retryAfterMs !== null) return Math.min(retryAfterMs, mostRetryAfter);
  return Math.round(random() * Math.min(most, base * 2 ** (retry - 1)));
}

/** From the headers of an answer, in milliseconds: seconds or a date. `null`: it does not say, or nothing of use. */
export function retryAfterOf(headers: unknown, now: number): number | null {
  const inMs = headerOf(headers, "retry-after-ms");
  if (inMs !== null && isCount(inMs)) return Math.round(Number(inMs));
  const given = headerOf(headers, "retry-after");
  if (given === null) return null;
  if (isCount(given)) return Math.round(Number(given) * 1000);
  // A bare number is no date, though some readers of dates take it for a year.
  const date = /[a-z]/i.test(given) ? Date.parse(given) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

function isCount(text: string): boolean {
  return /^\d{1,12}(?:\.\d{1,9})?$/.test(text);
}

function headerOf(headers: unknown, name: string): string | null {
  if (typeof headers !== "object" || headers === null) return null;
  const found = Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
  return typeof found === "string" ? found.trim() : null;
}
