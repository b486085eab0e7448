const secondMs = 1000;
const dayMs = 86_400_000;

/**
 * The last moment, `now` included, at which a new day began: the first moment of a date at which the local clock shows
 * this hour or later. Where the clock skips the hour, that is the moment of the skip; where it shows it twice, the first.
 */
export function lastDayBreak(now: number, atHour: number, timeZone?: string): number {
  const clock = wallClock(timeZone);
  const today = Math.floor(clock(now) / dayMs) * dayMs;
  const breakOf = (date: number) => firstMomentAt(date + atHour * 3600 * secondMs, clock);
  // Tomorrow's too: where the clock goes back over midnight, tomorrow has begun once already.
  return [today + dayMs, today, today - dayMs].map(breakOf).find((moment) => moment <= now) as number;
}

/** What a clock on the wall shows at a moment, as if it were UTC. */
type WallClock = (moment: number) => number;

function wallClock(timeZone: string | undefined): WallClock {
  const format = new Intl.DateTimeFormat("en-US", {
    ...(timeZone === undefined ? {} : { timeZone }),
    calendar: "gregory",
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  return (moment) => {
    const parts = new Map(format.formatToParts(moment).map(({ type, value }) => [type, Number(value)]));
    const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
    const shown = Date.UTC(
      part("year"),
      part("month") - 1,
      part("day"),
      part("hour"),
      part("minute"),
      part("second"),
    );
    return shown + (((moment % secondMs) + secondMs) % secondMs);
  };
}

/** The first moment at which the clock shows this or later. */
function firstMomentAt(shown: number, clock: WallClock): number {
  const offsetAt = (moment: number) => clock(moment) - moment;
  const [before, after] = [shown - offsetAt(shown - dayMs), shown - offsetAt(shown + dayMs)];
  const exact = [before, after].filter((moment) => clock(moment) === shown);
  if (exact.length > 0) return Math.min(...exact);
  // The clock skips it: look for the moment of the skip.
  let [early, late] = [Math.min(before, after), Math.max(before, after)];
  while (late - early > 1) {
    const middle = Math.floor((early + late) / 2);
    if (clock(middle) >= shown) late = middle;
    else early = middle;
  }
  return late;
}
