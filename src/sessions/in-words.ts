/** Amounts as sentences have them. */

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const;

/** For example "12 days"; two of a unit at the least, but for seconds. `round` says which way parts of a unit go. */
export function timeInWords(ms: number, round: (value: number) => number = Math.floor): string {
  const [name, size] = units.find(([, each]) => ms >= 2 * each) ?? ["second", 1000];
  return countInWords(round(Math.max(0, ms) / size), name);
}

/** For example "1 session", "5,000 sessions". */
export function countInWords(count: number, name: string): string {
  return `${count.toLocaleString("en-US")} ${name}${count === 1 ? "" : "s"}`;
}

/** For example "1.5 GB", a thousand million bytes each. */
export function bytesInWords(bytes: number): string {
  const names = ["bytes", "KB", "MB", "GB", "TB"];
  const step = Math.min(names.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const rounded = Math.round((bytes / 1000 ** step) * 10) / 10;
  return rounded >= 1000 && step < names.length - 1 ? `1 ${names[step + 1]}` : `${rounded} ${names[step]}`;
}
