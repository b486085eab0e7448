/** One physical line of a file. */
export interface RawLine {
  /** Counted from 1. */
  readonly line: number;
  /** `null` if the bytes are not UTF-8. */
  readonly text: string | null;
  /** Whether the line ends with a line break. Only the last line can lack one. */
  readonly complete: boolean;
  /** The start and the length without the line break, in bytes or, for a string, UTF-16 code units. */
  readonly offset: number;
  readonly length: number;
}

const lineFeed = 0x0a;

/**
 * Yields the lines of a file, except blank lines. Bytes are decoded line by line because a file can exceed the maximum
 * string length and one bad byte should affect only one line. A byte order mark and CRLF are not part of a line.
 */
export function* splitLines(source: string | Uint8Array): Generator<RawLine> {
  const decode = typeof source === "string" ? null : createDecoder();
  const end = source.length;
  let line = 0;
  for (let start = 0; start < end; ) {
    const found = typeof source === "string" ? source.indexOf("\n", start) : source.indexOf(lineFeed, start);
    const stop = found === -1 ? end : found;
    line += 1;
    const text =
      typeof source === "string"
        ? source.slice(start, stop)
        : (decode?.(source.subarray(start, stop)) ?? null);
    const offset = start;
    start = stop + 1;
    const trimmed = text === null ? null : trim(text, line === 1);
    if (trimmed !== "") yield { line, text: trimmed, complete: found !== -1, offset, length: stop - offset };
  }
}

function trim(text: string, first: boolean): string {
  const from = first && text.startsWith("\ufeff") ? 1 : 0;
  const to = text.endsWith("\r") ? text.length - 1 : text.length;
  const bare = from === 0 && to === text.length ? text : text.slice(from, to);
  return bare.trim() === "" ? "" : bare;
}

function createDecoder(): (bytes: Uint8Array) => string | null {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  return (bytes) => {
    try {
      return decoder.decode(bytes);
    } catch {
      return null;
    }
  };
}
