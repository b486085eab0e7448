import { spaceOf } from "../../core/space.ts";
import { printPayload } from "./answer.ts";
import { pluralize } from "./format.ts";
import type { AllUsersOption, Invocation } from "./invocation.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, pad, paint, printNote, wholeLine, widthOf } from "./terminal.ts";

export interface Column<T> {
  readonly title: string;
  text(row: T): string;
  readonly align?: "left" | "right";
  /** The width to which the column can be truncated if the line is too long. By default, no column is truncated. */
  readonly least?: number;
  /** `true` for a name that other commands accept, which is never truncated. */
  readonly whole?: boolean;
  /** If set, the column can be omitted if the line is still too long. Columns with higher numbers are omitted first. */
  readonly spare?: number;
}

export const userColumn: Column<{
  readonly userId?: string;
  readonly namespace?: readonly string[];
  readonly store?: string;
}> = {
  title: "USER",
  text: ({ userId, namespace, store }) => {
    const user = spaceOf(userId ?? null);
    const folders = namespace ?? user.namespace;
    const named = store ?? user.store;
    return [
      user.userId ?? "(unnamed)",
      ...(folders === null ? [] : [`in ${folders.join("/")}`]),
      ...(named === null ? [] : [`of store ${named}`]),
    ].join(" ");
  },
  whole: true,
};

/** Inserts the user after the first column if `--all-users` is set. */
export function withUserColumn<Row extends { readonly userId?: string }>(
  { options }: Invocation<AllUsersOption>,
  columns: readonly Column<Row>[],
): readonly Column<Row>[] {
  return options.allUsers === true ? columns.toSpliced(1, 0, userColumn) : columns;
}

interface ShownList<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Printed if there are no rows. */
  readonly empty: string;
  /** Printed below the table. */
  readonly notes?: readonly string[];
}

/** Prints the payload if `--json` is set, otherwise its rows as a table. */
export function printList<Row>(
  cli: Invocation,
  payload: unknown,
  { columns, rows, empty, notes = [] }: ShownList<Row>,
): void {
  const { terminal } = cli;
  printPayload(cli, payload, () => {
    if (rows.length === 0) terminal.out(`${empty}\n`);
    else printTable(terminal, columns, rows);
    for (const note of notes) printNote(terminal, note);
  });
}

/** Returns the notes below a page: how to see the next page, and how many sessions the index does not cover yet. */
export function pageNotes(
  nextCursor: string | undefined,
  indexing: { readonly behind: number } | undefined,
): string[] {
  return [
    ...(nextCursor === undefined ? [] : [`more: --cursor ${nextCursor}`]),
    ...(indexing === undefined ? [] : [`the index is behind for ${pluralize(indexing.behind, "session")}`]),
  ];
}

const gap = 2;
const widest = 60;

interface Filled<T> {
  readonly column: Column<T>;
  readonly cells: readonly string[];
  readonly width: number;
}

/**
 * Prints aligned columns. A column that is empty in every row is omitted. Lines are truncated to the terminal's width
 * unless the names alone are wider. Nothing is truncated if the output is not a terminal.
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

function cellOf<T>(column: Column<T>, row: T, most: number): string {
  const isWhole = column.whole === true || most === Number.POSITIVE_INFINITY;
  const text = column.text(row);
  return isWhole ? wholeLine(text) : oneLine(text, widest);
}

/** Returns a column's width, which is limited so that one long cell does not widen every row. */
function widestOf<T>({ title, whole }: Column<T>, cells: readonly string[]): number {
  const width = cells.reduce((most, cell) => Math.max(most, widthOf(cell)), title.length);
  return whole === true ? width : Math.min(width, widest);
}

/** Omits spare columns, highest number first, until the rest fit at their minimum widths. */
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

/**
 * Shrinks the widest column that can be truncated, one character at a time, until all columns fit or none can shrink.
 */
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

/** If the names alone fill the line, the columns after the last name are omitted. The line might still be too wide. */
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

/** The cells are already escaped, and `oneLine` would collapse the spaces between them. */
function cutLine(line: string, columns: number): string {
  if (widthOf(line) <= columns) return line;
  let kept = "";
  for (const char of line) {
    if (widthOf(kept + char) >= columns) break;
    kept += char;
  }
  return `${kept}…`;
}
