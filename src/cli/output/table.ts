import type { Terminal } from "./terminal.ts";
import { oneLine, pad, paint } from "./terminal.ts";
import { widthOf } from "./width.ts";

export interface Column<T> {
  readonly title: string;
  text(row: T): string;
  readonly align?: "left" | "right";
  /** Where the line is too long, it may be cut down to this; left out: it keeps its width. */
  readonly least?: number;
  /** Where the line is still too long, it may be left out; the highest number goes first. */
  readonly spare?: number;
}

const gap = 2;
const widest = 60;

interface Filled<T> {
  readonly column: Column<T>;
  readonly cells: readonly string[];
  readonly width: number;
}

/** Rows below titles, aligned, no wider than the terminal. A column that is empty in every row is left out. */
export function printTable<T>(terminal: Terminal, columns: readonly Column<T>[], rows: readonly T[]): void {
  const filled = columns
    .map((column) => ({ column, cells: rows.map((row) => oneLine(column.text(row), widest)) }))
    .filter(({ cells }) => cells.some((cell) => cell !== ""))
    .map((each) => ({ ...each, width: widestOf(each.column.title, each.cells) }));
  const shown = withoutSpare(filled, terminal.columns);
  const widths = fitting(shown, terminal.columns);
  const print = (texts: readonly string[], paintLine = (text: string) => text) => {
    const cells = shown.map(({ column }, index) =>
      placed(texts[index] ?? "", widths[index] ?? 0, column.align),
    );
    terminal.out(`${paintLine(cutLine(cells.join(" ".repeat(gap)).trimEnd(), terminal.columns))}\n`);
  };
  print(
    shown.map(({ column }) => column.title),
    (text) => paint(terminal, "bold", text),
  );
  for (const index of rows.keys()) print(shown.map(({ cells }) => cells[index] ?? ""));
}

function widestOf(title: string, cells: readonly string[]): number {
  return cells.reduce((width, cell) => Math.max(width, widthOf(cell)), title.length);
}

/** Leaves out spare columns, the most spare first, until the rest fits when it is cut as far as it may be. */
function withoutSpare<T>(columns: readonly Filled<T>[], most: number): readonly Filled<T>[] {
  const least = columns.map(({ column, width }) => Math.min(width, column.least ?? width));
  if (least.reduce((sum, width) => sum + width + gap, -gap) <= most) return columns;
  const spare = Math.max(...columns.map(({ column }) => column.spare ?? 0));
  if (spare === 0) return columns;
  return withoutSpare(
    columns.filter(({ column }) => column.spare !== spare),
    most,
  );
}

/** Takes from the widest that may be cut, a column at a time, until all fit or nothing more can be taken. */
function fitting<T>(columns: readonly Filled<T>[], most: number): number[] {
  const widths = columns.map(({ width }) => width);
  const room = most - gap * (columns.length - 1);
  for (let over = widths.reduce((sum, width) => sum + width, 0) - room; over > 0; over--) {
    let chosen = -1;
    for (const [index, { column }] of columns.entries()) {
      const width = widths[index] ?? 0;
      if (column.least !== undefined && width > column.least && width > (widths[chosen] ?? 0)) chosen = index;
    }
    if (chosen === -1) break;
    widths[chosen] = (widths[chosen] ?? 0) - 1;
  }
  return widths;
}

function placed(text: string, width: number, align: "left" | "right" = "left"): string {
  const cell = oneLine(text, width);
  return align === "left" ? pad(cell, width) : " ".repeat(Math.max(0, width - widthOf(cell))) + cell;
}

/** The cells are harmless already and stand apart by blanks, which `oneLine` would draw together. */
function cutLine(line: string, columns: number): string {
  if (widthOf(line) <= columns) return line;
  let kept = "";
  for (const char of line) {
    if (widthOf(kept + char) >= columns) break;
    kept += char;
  }
  return `${kept}…`;
}
