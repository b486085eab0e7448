import { resolve } from "node:path";
import type { InspectColor } from "node:util";
import { styleText } from "node:util";
import stringWidth from "string-width";

/** What a command knows of the outside: where it prints, how wide that is, where the user stands. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  readonly color: boolean;
  readonly columns: number;
  /** Relative paths are taken from here. */
  readonly cwd: string;
}

/** The terminal of this process. Under `npm run skein` the user stands where npm was called, not at the root. */
export function processTerminal(): Terminal {
  const { env, stdout, stderr } = process;
  const fromOurScript = env.npm_lifecycle_event === "skein" && env.npm_package_name === "skein";
  const forced = env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "" && env.FORCE_COLOR !== "0";
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    color: (env.NO_COLOR ?? "") === "" && (stdout.isTTY === true || forced),
    columns: stdout.columns ?? 100,
    cwd: (fromOurScript ? env.INIT_CWD : undefined) ?? process.cwd(),
  };
}

export function pathFrom(terminal: Terminal, path: string): string {
  return resolve(terminal.cwd, path);
}

export function paint(terminal: Terminal, color: InspectColor, text: string): string {
  return terminal.color ? styleText(color, text, { validateStream: false }) : text;
}

/**
 * Text from a transcript, harmless on a terminal: control characters and those that turn the direction of writing
 * are shown, not obeyed. Line breaks and tabs stay.
 */
export function harmless(text: string): string {
  return text.toWellFormed().replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (char) => {
      const code = char.charCodeAt(0);
      if (code < 0x20) return String.fromCharCode(0x2400 + code);
      return code === 0x7f ? "␡" : `\\u${code.toString(16).padStart(4, "0")}`;
    },
  );
}

/** One harmless line of at most so many columns. */
export function oneLine(text: string, columns: number): string {
  const line = harmless(text).replace(/\s+/g, " ").trim();
  if (line.length <= columns && stringWidth(line) <= columns) return line;
  let width = 1;
  let kept = "";
  for (const { segment } of new Intl.Segmenter().segment(line.slice(0, 8 * columns))) {
    width += stringWidth(segment);
    if (width > columns) break;
    kept += segment;
  }
  return columns < 1 ? "" : `${kept}…`;
}

/** Fills up to a width in columns. */
export function pad(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - stringWidth(text)));
}
