/** Parses and formats durations and sizes in human-readable form. */

interface Unit {
  readonly name: string;
  readonly size: number;
}

/** Smallest first. */
const timeUnits: readonly Unit[] = [
  { name: "ms", size: 1 },
  { name: "s", size: 1000 },
  { name: "m", size: 60_000 },
  { name: "h", size: 3_600_000 },
  { name: "d", size: 86_400_000 },
  { name: "w", size: 604_800_000 },
];
const byteUnits: readonly Unit[] = [
  { name: "B", size: 1 },
  { name: "KB", size: 1e3 },
  { name: "MB", size: 1e6 },
  { name: "GB", size: 1e9 },
  { name: "TB", size: 1e12 },
];
/** Also accepted as input. Used for output only if shorter. */
const binaryUnits: readonly Unit[] = [
  { name: "KiB", size: 1024 },
  { name: "MiB", size: 1024 ** 2 },
  { name: "GiB", size: 1024 ** 3 },
  { name: "TiB", size: 1024 ** 4 },
];

/** A petabyte, or thirty thousand years. A larger amount must be a typo. */
export const mostAmount = 1e15 - 1;

const amountPattern = (units: readonly Unit[]) =>
  `^(?=.*[1-9])\\d{1,15}(?:\\.\\d{1,9})? ?(?:${units.map(({ name }) => name).join("|")})$`;

export const durationPattern = amountPattern(timeUnits);
export const bytesPattern = amountPattern([...byteUnits, ...binaryUnits]);

/** Returns the milliseconds in "30d" or "1.5h", or `null` for anything else. */
export function parseDuration(text: string): number | null {
  return parseAmount(text, durationPattern, timeUnits);
}

/** For example, `formatDuration(5_400_000)` returns `"90m"`. */
export function formatDuration(ms: number): string {
  return formatAmount(ms, timeUnits);
}

/** Returns the bytes in "10GB" (10⁹ each) or "10GiB" (1024³ each), or `null` for anything else. */
export function parseBytes(text: string): number | null {
  return parseAmount(text, bytesPattern, [...byteUnits, ...binaryUnits]);
}

/** For example, `formatBytes(1_500_000)` returns `"1500KB"`. Parsing the result gives the same number. */
export function formatBytes(bytes: number): string {
  const [decimal, binary] = [formatAmount(bytes, byteUnits), formatAmount(bytes, binaryUnits)];
  return binary !== "" && binary.length < decimal.length ? binary : decimal;
}

function parseAmount(text: string, pattern: string, units: readonly Unit[]): number | null {
  if (!new RegExp(pattern).test(text)) return null;
  const [, number = "", name = ""] = /^([\d.]+) ?(\w+)$/.exec(text) ?? [];
  const amount = Math.round(Number(number) * (units.find((unit) => unit.name === name)?.size ?? 0));
  return amount > 0 && amount <= mostAmount ? amount : null;
}

/** Uses the largest unit that divides the amount evenly. */
function formatAmount(amount: number, units: readonly Unit[]): string {
  const unit = units.findLast(({ size }) => amount % size === 0);
  return unit === undefined ? "" : `${amount / unit.size}${unit.name}`;
}
