import { Cron } from "croner";

/** The times at which a cron expression is due in a time zone. */
export interface DueTimes {
  /** Returns the last due time that is not after `now`, or `null` if there is none. */
  lastAt(now: number): number | null;
  /** Returns the first due time after `now`, or `null` if there is none. */
  nextAfter(now: number): number | null;
}

/** Five fields, or a nickname. */
export const cronPattern =
  "^(?:@(?:yearly|annually|monthly|weekly|daily|hourly)|[^\\s@]+(?:[ \\t]+[^\\s@]+){4})$";

/** Must start with a letter. Offsets are rejected because they have no daylight saving time. */
export const timeZonePattern = "^[A-Za-z][A-Za-z0-9_+/-]*$";

/** Every expression that is ever due is due within a few years of this time. */
const anyTime = Date.UTC(2000, 0, 1);

/** Whether the text is a cron expression that is due at some time. `0 0 30 2 *` is not. */
export function isCronExpression(text: string): boolean {
  if (!new RegExp(cronPattern).test(text)) return false;
  try {
    return dueTimes(text, "UTC").nextAfter(anyTime) !== null;
  } catch {
    return false; // croner rejects the expression.
  }
}

const cronFields = [
  "first field: minutes from 0 to 59",
  "second field: hours from 0 to 23",
  "third field: days of the month from 1 to 31",
  "fourth field: months from 1 to 12",
  "fifth field: days of the week from 0 (Sunday) to 7",
] as const;

/**
 * Returns what an invalid expression needs: a valid field, or a time that occurs. Returns `null` if the expression does
 * not have five fields.
 */
export function describeCronProblem(text: string): string | null {
  if (!new RegExp(cronPattern).test(text) || text.startsWith("@")) return null;
  const fields = text.trim().split(/[ \t]+/);
  const wrong = fields.findIndex((field, index) => {
    const alone = fields.map((_, other) => (other === index ? field : "*"));
    return !isCronExpression(alone.join(" "));
  });
  const field = cronFields[wrong];
  return field === undefined
    ? "a time that occurs; this one never does"
    : `a valid ${field}, with ranges in ascending order and steps of at least 1`;
}

export function isTimeZone(name: string): boolean {
  if (!new RegExp(timeZonePattern).test(name)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false; // The time zone is unknown.
  }
}

/**
 * Returns the due times of a valid expression. A time of day that a clock change skips is due at the change. A time of
 * day that occurs twice is due at its first occurrence. An expression with a step, a range or `*` for minutes or hours
 * is instead due at every matching time that exists, including both occurrences of a repeated time.
 */
export function dueTimes(expression: string, timeZone: string): DueTimes {
  const crons = splitTimesOfDay(expression).map(
    (each) => new Cron(each, { timezone: timeZone, mode: "5-part", paused: true }),
  );
  const times = (find: (cron: Cron) => Date | null | undefined) =>
    crons.flatMap((cron) => find(cron)?.getTime() ?? []);
  return {
    lastAt: (now) =>
      times((cron) => cron.previousRuns(1, new Date(now + 1000))[0]).sort(latestFirst)[0] ?? null,
    nextAfter: (now) => times((cron) => cron.nextRun(new Date(now))).sort(earliestFirst)[0] ?? null,
  };
}

const earliestFirst = (a: number, b: number) => a - b;
const latestFirst = (a: number, b: number) => b - a;

/** Croner applies its rules for clock changes only to an expression with one minute and one hour. */
function splitTimesOfDay(expression: string): readonly string[] {
  const [minutes = "", hours = "", ...days] = expression.trim().split(/\s+/);
  const isList = /^\d+(,\d+)*$/;
  if (!isList.test(minutes) || !isList.test(hours)) return [expression];
  return hours
    .split(",")
    .flatMap((hour) => minutes.split(",").map((minute) => [minute, hour, ...days].join(" ")));
}
