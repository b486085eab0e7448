/**
 * Truncates text to a number of UTF-16 code units without splitting a surrogate pair. Returns the same string if it
 * fits.
 */
export function cutText(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const last = text.charCodeAt(longest - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? longest - 1 : longest);
}

/**
 * Shortens text to at most `longest` UTF-16 code units, including the `…` at its end. Cuts at the last space if that
 * space is in the second half.
 */
export function shortenText(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const space = text.lastIndexOf(" ", longest - 1);
  return `${space > longest / 2 ? text.slice(0, space) : cutText(text, longest - 1)}…`;
}

/** Returns the last `longest` UTF-16 code units of a string, or fewer to avoid splitting a surrogate pair. */
export function endOfText(text: string, longest: number): string {
  const from = Math.max(0, text.length - longest);
  const unit = text.charCodeAt(from);
  return text.slice(from > 0 && unit >= 0xdc00 && unit <= 0xdfff ? from + 1 : from);
}

/** Characters that control a terminal, break a line or change the writing direction, except tab and newline. */
const unprintable =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\u{e0000}-\u{e007f}]/gu;

/** Escapes unprintable characters as `\\uXXXX` and replaces unpaired surrogates. */
export function escapeUnprintable(text: string): string {
  return text.toWellFormed().replace(unprintable, escaped);
}

/** Like `escapeUnprintable`, but the result is a single line. */
export function escapeToLine(text: string): string {
  return escapeUnprintable(text).replace(/[\t\n]/g, escaped);
}

function escaped(char: string): string {
  return Array.from({ length: char.length }, (_, index) => char.charCodeAt(index))
    .map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`)
    .join("");
}

const quotedPath = /(["'`])(?:file:\/\/)?(?:\/|[A-Za-z]:\\)[^"'`\n]*[/\\]([^"'`/\\\n]*)\1/g;
const barePath =
  /(?<![\w/:.~\\-])(?:file:\/\/)?(?:\/|[A-Za-z]:\\)(?:[^\s/\\"'`<>|;,]+[/\\])+([^\s/\\"'`<>|;,]*)/g;

/** Reduces absolute paths to their last segment: `…/trip.jsonl`. A path with only one segment is kept. */
export function withoutAbsolutePaths(text: string): string {
  return text.replace(quotedPath, "$1…/$2$1").replace(barePath, "…/$1");
}

/** Like `withoutAbsolutePaths`, but for a model that works in `cwd`. Paths inside that folder become relative. */
export function withoutPathsOutside(cwd: string | null, text: string): string {
  const inside = cwd === null || cwd.length < 2 ? text : text.replaceAll(`${cwd}/`, "");
  return withoutAbsolutePaths(inside);
}

/** Converts a thrown value of any type to text. Handles values whose own conversion throws. */
export function thrownText(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return "an unreadable value was thrown";
  }
}

const shortestFence = 3;
const longestFence = 64;

/**
 * Encloses text in a fence of backticks or tildes that it cannot close, because the fence is longer than every sequence
 * of its character in the text. A sequence that is too long for a fence is broken up with spaces.
 */
export function fenceText(text: string): string {
  const fits = (["`", "~"] as const).map((char) => ({ char, run: longestRun(text, char) }));
  const { char, run } = fits.reduce((best, each) => (each.run < best.run ? each : best));
  const fence = char.repeat(Math.min(longestFence, Math.max(shortestFence, run + 1)));
  const piece = char.repeat(longestFence - 1);
  const inside = run >= longestFence ? text.replaceAll(piece, `${piece} `) : text;
  return `${fence}\n${inside}\n${fence}`;
}

function longestRun(text: string, char: string): number {
  let longest = 0;
  let run = 0;
  for (let at = 0; at < text.length; at++) {
    run = text[at] === char ? run + 1 : 0;
    if (run > longest) longest = run;
  }
  return longest;
}

/** Whether a string is non-empty, padded base64. */
export function isBase64(text: string): boolean {
  return text.length > 0 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}

/** The maximum length of a result that is passed to a model. The session that produced it keeps the whole result. */
export const maxCharacters = 100_000;
/** The maximum length of each message that an exchange's announcement quotes. */
export const longestQuote = 4000;

const noOutput = "(no output)";

/** Fences text from another author. Control characters are escaped, and long text is truncated. */
export function fenceUntrusted(text: string, longest: number = maxCharacters): string {
  const shown = escapeUnprintable(cutText(text.trim(), longest).replaceAll("\r\n", "\n"));
  return fenceText(shown === "" ? noOutput : shown);
}

/** Escapes and truncates text for use within a line. */
export function inLine(text: string, longest = 300): string {
  const line = escapeToLine(cutText(text, longest + 1).trim());
  return line.length > longest ? `${cutText(line, longest)}…` : line;
}

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const;

/** For example "12 days". Uses the largest unit that gives at least 2. */
export function formatDuration(ms: number, round: (value: number) => number = Math.floor): string {
  const [name, size] = units.find(([, each]) => ms >= 2 * each) ?? ["second", 1000];
  return formatCount(round(Math.max(0, ms) / size), name);
}

/** For example "1 session", "5,000 sessions". */
export function formatCount(count: number, name: string): string {
  return `${count.toLocaleString("en-US")} ${name}${count === 1 ? "" : "s"}`;
}

/** For example "1.5 GB", in decimal units. */
export function formatBytes(bytes: number): string {
  const names = ["bytes", "KB", "MB", "GB", "TB"];
  const step = Math.min(names.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const rounded = Math.round((bytes / 1000 ** step) * 10) / 10;
  return rounded >= 1000 && step < names.length - 1 ? `1 ${names[step + 1]}` : `${rounded} ${names[step]}`;
}
