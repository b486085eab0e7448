/** Numbers as people read them in a table. */

export function shownBytes(bytes: number): string {
  return scaled(bytes, 1024, ["B", "KB", "MB", "GB", "TB"], " ");
}

export function shownCount(count: number): string {
  return scaled(count, 1000, ["", "k", "M", "G"], "");
}

export function shownCost(usd: number | null): string {
  if (usd === null) return "?";
  if (usd === 0) return "";
  return usd < 0.01 ? "<$0.01" : `$${usd.toFixed(2)}`;
}

const minute = 60_000;
const spans = [
  { unit: "d", ms: 24 * 60 * minute },
  { unit: "h", ms: 60 * minute },
  { unit: "m", ms: minute },
] as const;

/** How long ago, in the largest unit that fits. */
export function shownAge(ms: number): string {
  const span = spans.find((each) => ms >= each.ms);
  return span === undefined ? "now" : `${Math.floor(ms / span.ms)}${span.unit}`;
}

export function counted(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

function scaled(value: number, step: number, units: readonly string[], blank: string): string {
  let left = value;
  let unit = 0;
  // 999.96 would be shown as 1000.0.
  while (Number(left.toFixed(1)) >= step && unit < units.length - 1) {
    left /= step;
    unit += 1;
  }
  const digits = unit === 0 || left >= 100 ? 0 : 1;
  return `${left.toFixed(digits)}${blank}${units[unit]}`;
}
