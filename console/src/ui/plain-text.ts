/**
 * Makes text from models, tools and other untrusted sources safe to display. Control characters and invisible or
 * direction-changing characters are shown as symbols, so that the screen shows what is in the log.
 */

const joiners = "\\u200c\\u200d";
const directionMarks = "\\u200e\\u200f";
const variants = "\\u180b-\\u180d\\u180f\\ufe00-\\ufe0f";
const letters = "[\\p{L}\\p{N}]";
const westernLetters = "\\p{sc=Latin}\\p{sc=Greek}\\p{sc=Cyrillic}";
/** Emoji, and letters of the scripts that join them. */
const joinable = `[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f[[\\p{L}\\p{M}]--[${westernLetters}]]]`;

const hidden = new RegExp(
  [
    `[[\\p{Default_Ignorable_Code_Point}\\p{Cc}\\u2028\\u2029\\ufff9-\\ufffb]--[\\t\\n${joiners}${directionMarks}${variants}]]`,
    // Scripts and emoji need these characters, but only in certain places. Elsewhere, they only make different texts
    // look the same.
    `[${joiners}](?<!${joinable}.)`,
    `[${directionMarks}](?<=${letters}.)(?=${letters})`,
    `[${variants}](?<![^\\s\\p{Default_Ignorable_Code_Point}\\p{Cc}${westernLetters}].)`,
  ].join("|"),
  "gv",
);

/** No script needs this many marks on a letter. Drawing thousands of them on one letter blocks the page. */
const tooManyMarks = new RegExp(`([\\p{M}${joiners}]{16})([\\p{M}${joiners}]+)`, "gv");

export function plainText(text: string): string {
  if (/^[\t\n -~]*$/.test(text)) return text;
  const readable = text.replace(
    tooManyMarks,
    (_, kept: string, rest: string) => `${kept}⟨${rest.length.toLocaleString("en")} more marks⟩`,
  );
  return readable.replace(hidden, (char) => {
    const code = char.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    if (code === 0x7f) return "␡";
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** Whether no part of a text would be visible. */
export function isBlank(text: string): boolean {
  return /^[\s\u2800\ufffc]*$/.test(text);
}

/**
 * Returns the beginning of a text on one line, at most `most` characters long. Ends at a word boundary if there are
 * spaces.
 */
export function oneLine(text: string, most = 200): string {
  const line = plainText(
    text
      .slice(0, most * 4)
      .replace(/\s+/g, " ")
      .trim(),
  );
  if (line.length <= most) return line;
  const space = line.lastIndexOf(" ", most - 1);
  const end = space > most / 2 ? space : wholeGraphemes(line, most - 1);
  return `${line.slice(0, end).replace(/[\s,;:]+$/, "")}…`;
}

/** Returns the last position up to `at` that does not split a letter from its accents or an emoji. */
function wholeGraphemes(line: string, at: number): number {
  return new Intl.Segmenter().segment(line).containing(at)?.index || at;
}

/** The limits for a text that is shown in full, and for the displayed parts of a longer one. */
export interface FoldLimits {
  readonly headLines: number;
  readonly headChars: number;
  readonly tailLines: number;
  readonly tailChars: number;
}

/**
 * Returns the beginning and end of a long text with a description of the omitted part, or `null` if the text is short
 * enough.
 */
export function foldText(
  text: string,
  { headLines, headChars, tailLines, tailChars }: FoldLimits,
): { readonly head: string; readonly hidden: string; readonly tail: string } | null {
  if (text.length <= headLines) return null;
  const from = Math.min(afterLines(text, headLines), wholeCharacter(text, headChars));
  const to = Math.max(beforeLines(text, tailLines), wholeCharacter(text, text.length - tailChars));
  if (from >= to) return null;
  const lines = text.slice(from, to).split("\n").length - 1;
  return { head: text.slice(0, from), hidden: hiddenCount(lines, to - from), tail: text.slice(to) };
}

/** Describes how much is hidden. For a few long lines, the number of lines would not show this. */
export function hiddenCount(lines: number, chars: number): string {
  const [count, unit] = lines * 1000 > chars ? [lines, "lines"] : [chars, "characters"];
  return `${count.toLocaleString("en")} ${unit}`;
}

/** Returns where the line after the first `count` lines begins. */
function afterLines(text: string, count: number): number {
  let at = 0;
  for (let line = 0; line < count; line += 1) {
    const end = text.indexOf("\n", at);
    if (end < 0) return text.length;
    at = end + 1;
  }
  return at;
}

/** Returns where the last `count` lines begin. */
function beforeLines(text: string, count: number): number {
  let at = text.length;
  for (let line = 0; line < count; line += 1) {
    at = text.lastIndexOf("\n", at - 1);
    if (at <= 0) return 0;
  }
  return at + 1;
}

/** Returns a position that does not split a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at + 1 : Math.max(0, at);
}
