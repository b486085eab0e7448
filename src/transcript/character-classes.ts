/** Which class each UTF-16 unit is of, as tokenizers see it. */
export const lower = 0;
export const upper = 1;
export const digit = 2;
/** A Latin letter that English lacks. */
export const accented = 3;
/** Classes below this one make words. */
export const space = 4;
export const newline = 5;
export const mark = 6;
/** A mark that lines are drawn of. */
export const rule = 7;

/** Scripts and signs that are counted by the unit, with the ranges that they take. */
const scripts = {
  symbol: [
    [0x80, 0xbf],
    [0x2000, 0x2e7f],
  ],
  cyrillic: [
    [0x401, 0x401],
    [0x410, 0x44f],
    [0x451, 0x451],
  ],
  /** Letters that Russian lacks: the sign of another language, whose words are in more pieces. */
  cyrillicOther: [
    [0x400, 0x400],
    [0x402, 0x40f],
    [0x450, 0x450],
    [0x452, 0x52f],
  ],
  greek: [
    [0x370, 0x3ff],
    [0x1f00, 0x1fff],
  ],
  hebrew: [[0x590, 0x5ff]],
  arabic: [
    [0x600, 0x77f],
    [0xfb50, 0xfdff],
    [0xfe70, 0xfefe],
  ],
  indic: [[0x900, 0xdff]],
  thai: [[0xe00, 0xeff]],
  hiragana: [[0x3040, 0x309f]],
  katakana: [
    [0x30a0, 0x30ff],
    [0xff61, 0xff9f],
  ],
  han: [
    [0x2e80, 0x2fff],
    [0x3100, 0x312f],
    [0x3400, 0x9fff],
    [0xf900, 0xfaff],
  ],
  hangul: [
    [0x1100, 0x11ff],
    [0x3130, 0x318f],
    [0xac00, 0xd7af],
  ],
  /** Full stops, commas and brackets of East Asia. */
  wideMark: [
    [0x3000, 0x303f],
    [0xff00, 0xff60],
    [0xffe0, 0xffef],
  ],
  /** Emoji and rare characters: each is two units. */
  surrogate: [[0xd800, 0xdfff]],
  /** What joins and varies characters, and accents that stand alone. */
  joiner: [
    [0x300, 0x36f],
    [0x200b, 0x200d],
    [0xfe00, 0xfe0f],
  ],
} as const;

export type Script = keyof typeof scripts | "other";
/** In the order of their classes, from `firstScript` on. */
export const scriptNames = ["other", ...Object.keys(scripts)] as readonly Script[];
export const firstScript = 8;
/** More than there are classes, and a power of two. */
export const classSpan = 32;

export const classOf: Uint8Array = new Uint8Array(0x10000).fill(firstScript);

function assign(kind: number, ...ranges: readonly (readonly [number, number])[]): void {
  for (const [from, to] of ranges) classOf.fill(kind, from, to + 1);
}

for (const [index, ranges] of Object.values(scripts).entries()) assign(firstScript + 1 + index, ...ranges);
assign(mark, [0x00, 0x7f]);
for (const char of "=-_*#~.") assign(rule, [char.charCodeAt(0), char.charCodeAt(0)]);
assign(lower, [0x61, 0x7a]);
assign(upper, [0x41, 0x5a]);
assign(digit, [0x30, 0x39]);
assign(accented, [0xc0, 0x24f], [0x1e00, 0x1eff]);
assign(space, [0x09, 0x09], [0x20, 0x20]);
assign(newline, [0x0a, 0x0a], [0x0d, 0x0d]);
