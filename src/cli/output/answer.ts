import type { Diagnostic } from "../../core/diagnostics.ts";
import type { GlobalOptions } from "./global-options.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, pad, paint, printJson } from "./terminal.ts";

/** A sentence, or a title with a value. */
export type AnswerLine = string | readonly [title: string, value: string];

/** Longer than a terminal line, so that values can be copied. */
const longest = 2000;

/** Prints the payload with `--json`, else the lines. */
export function answer(
  terminal: Terminal,
  { json }: GlobalOptions,
  payload: object,
  lines: readonly AnswerLine[],
): void {
  if (json === true) {
    printJson(terminal, payload);
    return;
  }
  const titles = lines.flatMap((line) => (typeof line === "string" ? [] : [line[0]]));
  const width = Math.max(0, ...titles.map((title) => title.length));
  for (const line of lines) {
    const text =
      typeof line === "string"
        ? oneLine(line, longest)
        : `  ${paint(terminal, "dim", pad(line[0], width))}  ${oneLine(line[1], longest)}`;
    terminal.out(`${text}\n`);
  }
}

/** A deletion is complete only when no other process reads the databases. */
export function erasePendingLines({
  erasePending,
}: {
  readonly erasePending?: true | undefined;
}): AnswerLine[] {
  if (erasePending !== true) return [];
  return ["another process is reading the databases; the last bytes are erased when it ends"];
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
    terminal.out(`  and ${findings.length - mostShown} more; --json shows them all\n`);
  }
}
