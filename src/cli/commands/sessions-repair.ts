import { repairSessionFile } from "../../compose.ts";
import type { RepairPayload } from "../../protocol/session-payloads.ts";
import { requireFileName } from "../output/open-named.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, paint, pathFrom, printJson } from "../output/terminal.ts";

/** Writes a damaged session file anew, the original kept beside it. */
export async function repairSession(
  terminal: Terminal,
  name: string,
  options: { json?: boolean },
): Promise<void> {
  requireFileName(name);
  const report: RepairPayload = await repairSessionFile(pathFrom(terminal, name));
  if (options.json === true) {
    printJson(terminal, report);
    return;
  }
  if (report.backup === null) {
    terminal.out(`${oneLine(name, terminal.columns)}: nothing to repair, ${report.kept} entries\n`);
    return;
  }
  terminal.out(
    `${paint(terminal, "bold", oneLine(name, terminal.columns))}: repaired, ${report.kept} entries kept\n`,
  );
  if (report.headerRebuilt) terminal.out("  the header was lost and is made anew\n");
  for (const { line, reason } of report.damaged.slice(0, 20))
    terminal.out(`  line ${line} was left out: ${reason}\n`);
  if (report.damaged.length > 20) terminal.out(`  and ${report.damaged.length - 20} more lines\n`);
  if (report.bridged.length > 0)
    terminal.out(`  ${report.bridged.length} entries hang on the entry before the damage now\n`);
  terminal.out(`  as it was: ${oneLine(report.backup, terminal.columns - 13)}\n`);
}
