/**
 * Text of models, tools and strangers, made safe to look at: control characters and invisible or direction-changing
 * characters are shown as symbols, so that what is on the screen is what is in the log.
 */

// Joiners (U+200C, U+200D) and direction marks (U+200E, U+200F) stay: scripts and emoji need them.
const ranges = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0x200b, 0x200b],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0xfeff, 0xfeff],
  [0xfff0, 0xfffb],
  [0xe0000, 0xe0fff],
] as const;
const hidden = new RegExp(
  `[${ranges.map(([from, to]) => `\\u{${from.toString(16)}}-\\u{${to.toString(16)}}`).join("")}]`,
  "gu",
);

export function plainText(text: string): string {
  return text.replace(hidden, (char) => {
    const code = char.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    if (code === 0x7f) return "␡";
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** The first line, at most `most` characters. */
export function oneLine(text: string, most = 200): string {
  const line = plainText(
    text
      .slice(0, most * 4)
      .replace(/\s+/g, " ")
      .trim(),
  );
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** Head and tail of a long text, with the number of lines between them. */
export function foldLines(
  text: string,
  head: number,
  tail: number,
): { head: string; left: number; tail: string } | null {
  const lines = text.split("\n");
  if (lines.length <= head + tail + 1) return null;
  return {
    head: lines.slice(0, head).join("\n"),
    left: lines.length - head - tail,
    tail: lines.slice(-tail).join("\n"),
  };
}
