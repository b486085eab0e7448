import type { Diagnostic } from "../../core/diagnostics.ts";
import { escapeToLine } from "../../core/text.ts";
import type { Invocation } from "./invocation.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, pad, paint, printJson } from "./terminal.ts";

/** A sentence, or a title with a value. A line whose value is missing is omitted. */
export type AnswerLine = string | readonly [title: string, value: string | undefined];

/** Longer than a terminal line so that values can be copied. */
const longest = 2000;

/** Prints the payload if `--json` is set, otherwise calls `print`. */
export function printPayload({ terminal, options }: Invocation, payload: unknown, print: () => void): void {
  if (options.json === true) printJson(terminal, payload);
  else print();
}

/** Prints the payload if `--json` is set, otherwise the lines. */
export function printAnswer(cli: Invocation, payload: object, lines: readonly AnswerLine[]): void {
  printPayload(cli, payload, () => printLines(cli.terminal, lines));
}

export function printLines(terminal: Terminal, lines: readonly AnswerLine[]): void {
  const titles = lines.flatMap((line) =>
    typeof line === "string" || line[1] === undefined ? [] : [line[0]],
  );
  const width = Math.max(0, ...titles.map((title) => title.length));
  for (const line of lines) {
    if (typeof line === "string") terminal.out(`${oneLine(line, longest)}\n`);
    else if (line[1] !== undefined)
      terminal.out(`  ${paint(terminal, "dim", pad(line[0], width))}  ${oneLine(line[1], longest)}\n`);
  }
}

/** Prints a notice on stderr unless `--json` is set. */
export function printNotice({ terminal, options }: Invocation, text: string): void {
  if (options.json !== true)
    terminal.err(`${paint(terminal, "yellow", "note:", "err")} ${escapeToLine(text)}\n`);
}

/** A deletion is complete only when no other process is reading the databases. */
export function erasePendingLines({
  erasePending,
}: {
  readonly erasePending?: true | undefined;
}): AnswerLine[] {
  if (erasePending !== true) return [];
  return ["another process is reading the databases; the last bytes will be erased when it exits"];
}

const mostShown = 20;

/** Prints problems that were found while reading. */
export function printFindings(
  terminal: Terminal,
  findings: readonly Pick<Diagnostic, "note" | "line" | "entryId">[],
): void {
  if (findings.length === 0) return;
  terminal.out(
    `\n${paint(terminal, "yellow", `${findings.length} finding${findings.length === 1 ? "" : "s"}`)}\n`,
  );
  for (const { note, line, entryId } of findings.slice(0, mostShown)) {
    const where = line === undefined ? entryId : `line ${line}`;
    terminal.out(`  ${oneLine(where === undefined ? note : `${where}: ${note}`, terminal.columns - 2)}\n`);
  }
  if (findings.length > mostShown) {
    terminal.out(`  and ${findings.length - mostShown} more; use --json to show them all\n`);
  }
}
