import type { Diagnostic } from "../../core/diagnostics.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, paint } from "./terminal.ts";

const mostShown = 20;

/** What reading found odd, below the result, for people. */
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
