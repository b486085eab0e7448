import type { Terminal } from "./terminal.ts";
import { oneLine, pad, paint, wholeLine, widthOf } from "./terminal.ts";

export interface Column<T> {
  readonly title: string;
  text(row: T): string;
  readonly align?: "left" | "right";
  /** Where the line is too long, it may be cut down to this; left out: it keeps its width. */
  readonly least?: number;
  /** A name that other commands take: one that is cut names nothing any more, so it never is. */
  readonly whole?: boolean;
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

/**
 * Rows below titles, aligned. A column that is empty in every row is left out. On a terminal no line is wider than it is, unless
 * names alone are; what no terminal shows is never cut.
 */
export function printTable<T>(terminal: Terminal, columns: readonly Column<T>[], rows: readonly T[]): void {
  const most = terminal.isWatched ? terminal.columns : Number.POSITIVE_INFINITY;
  const filled = columns
    .map((column) => ({ column, cells: rows.map((row) => cellOf(column, row, most)) }))
    .filter(({ cells }) => cells.some((cell) => cell !== ""))
    .map((each) => ({ ...each, width: widestOf(each.column, each.cells) }));
  const fitted = withoutSpare(filled, most);
  const widths = fitting(fitted, most);
  const shown = upToNames(fitted, widths, most);
  const lineWidth = shown === fitted ? most : Number.POSITIVE_INFINITY;
  const print = (texts: readonly string[], paintLine = (text: string) => text) => {
    const cells = shown.map(({ column }, index) =>
      placed(texts[index] ?? "", widths[index] ?? 0, column, most),
    );
    terminal.out(`${paintLine(cutLine(cells.join(" ".repeat(gap)).trimEnd(), lineWidth))}\n`);
  };
  print(
    shown.map(({ column }) => column.title),
    (text) => paint(terminal, "bold", text),
  );
  for (const index of rows.keys()) print(shown.map(({ cells }) => cells[index] ?? ""));
}

/** One line of text; of a name, and where nothing is cut, all of it. */
function cellOf<T>(column: Column<T>, row: T, most: number): string {
  const isWhole = column.whole === true || most === Number.POSITIVE_INFINITY;
  const text = column.text(row);
  return isWhole ? wholeLine(text) : oneLine(text, widest);
}

/** A long text that is not cut does not move the columns of other rows away. */
function widestOf<T>({ title, whole }: Column<T>, cells: readonly string[]): number {
  const width = cells.reduce((most, cell) => Math.max(most, widthOf(cell)), title.length);
  return whole === true ? width : Math.min(width, widest);
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

/** Where names alone fill the line, what stands behind the last of them is left out; the line may then be too wide. */
function upToNames<T>(
  columns: readonly Filled<T>[],
  widths: readonly number[],
  most: number,
): readonly Filled<T>[] {
  const count = columns.findLastIndex(({ column }) => column.whole === true) + 1;
  const names = widths.slice(0, count).reduce((sum, width) => sum + width + gap, 0);
  return names < most ? columns : columns.slice(0, count);
}

function placed<T>(text: string, width: number, { align, whole }: Column<T>, most: number): string {
  const isCut = whole !== true && most !== Number.POSITIVE_INFINITY;
  const cell = isCut ? oneLine(text, width) : text;
  return align === "right" ? " ".repeat(Math.max(0, width - widthOf(cell))) + cell : pad(cell, width);
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
