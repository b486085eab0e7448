import stringWidth from "string-width";
import type { Terminal } from "./terminal.ts";
import { oneLine, pad, paint } from "./terminal.ts";

export interface Column<T> {
  readonly title: string;
  text(row: T): string;
  readonly align?: "left" | "right";
  /** Where the line is too long, it may be cut down to this; left out: it keeps its width. */
  readonly least?: number;
}

const gap = 2;
const widest = 60;

/** Rows below titles, aligned, no wider than the terminal. A column that is empty in every row is left out. */
export function printTable<T>(terminal: Terminal, columns: readonly Column<T>[], rows: readonly T[]): void {
  const filled = columns
    .map((column) => ({ column, cells: rows.map((row) => oneLine(column.text(row), widest)) }))
    .filter(({ cells }) => cells.some((cell) => cell !== ""));
  const widths = fitting(
    filled.map(({ column, cells }) => ({
      width: Math.max(column.title.length, ...cells.map((cell) => stringWidth(cell))),
      least: column.least ?? null,
    })),
    terminal.columns,
  );
  const line = (texts: readonly string[]) =>
    filled
      .map(({ column }, index) =>
        placed(oneLine(texts[index] ?? "", widths[index] ?? 0), widths[index] ?? 0, column.align),
      )
      .join(" ".repeat(gap))
      .trimEnd();
  const print = (text: string) => terminal.out(`${text}\n`);
  print(paint(terminal, "bold", oneEnd(line(filled.map(({ column }) => column.title)), terminal.columns)));
  for (const index of rows.keys()) {
    print(oneEnd(line(filled.map(({ cells }) => cells[index] ?? "")), terminal.columns));
  }
}

/** Takes from the widest that may be cut, a column at a time, until all fit or nothing more can be taken. */
function fitting(columns: readonly { width: number; least: number | null }[], most: number): number[] {
  const widths = columns.map(({ width }) => width);
  const room = most - gap * (columns.length - 1);
  for (let over = widths.reduce((sum, width) => sum + width, 0) - room; over > 0; over--) {
    let chosen = -1;
    for (const [index, { least }] of columns.entries()) {
      const width = widths[index] ?? 0;
      if (least !== null && width > least && width > (widths[chosen] ?? 0)) chosen = index;
    }
    if (chosen === -1) break;
    widths[chosen] = (widths[chosen] ?? 0) - 1;
  }
  return widths;
}

function placed(text: string, width: number, align: "left" | "right" = "left"): string {
  return align === "left" ? pad(text, width) : " ".repeat(Math.max(0, width - stringWidth(text))) + text;
}

/** The cells are harmless already and may be aligned by blanks, which `oneLine` would draw together. */
function oneEnd(line: string, columns: number): string {
  if (stringWidth(line) <= columns) return line;
  let kept = "";
  for (const char of line) {
    if (stringWidth(kept + char) >= columns) break;
    kept += char;
  }
  return `${kept}…`;
}
