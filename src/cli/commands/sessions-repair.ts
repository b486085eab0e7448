import { logPath, readLog, repairSessionFile } from "../../compose.ts";
import type { RepairPayload } from "../../protocol/session-payloads.ts";
import { damageIn } from "../../sessions/damage.ts";
import { findSession, isFileName } from "../folder/find-session.ts";
import { withFolder } from "../folder/with-folder.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, paint, pathFrom, printJson, wholeLine } from "../output/terminal.ts";

const mostLines = 20;

/** Writes a damaged session file anew, the original kept beside it; of our own log, says what is damaged. */
export async function repairSession(terminal: Terminal, name: string, options: GlobalOptions): Promise<void> {
  const report: RepairPayload = isFileName(name)
    ? await repairSessionFile(pathFrom(terminal, name))
    : await damageOf(terminal, name, options);
  if (options.json === true) printJson(terminal, report);
  else if (isFileName(name)) printRepair(terminal, name, report);
  else printDamage(terminal, name, report);
}

async function damageOf(terminal: Terminal, name: string, options: GlobalOptions): Promise<RepairPayload> {
  return withFolder(terminal, options, async (folder) => {
    const record = await findSession(folder, name);
    const { store } = folder;
    return damageIn(logPath(store, record), await readLog(store, record));
  });
}

function printRepair(terminal: Terminal, name: string, report: RepairPayload): void {
  const shown = wholeLine(name);
  if (report.backup === null) {
    terminal.out(`${shown}: nothing to repair, ${report.kept} entries\n`);
    return;
  }
  terminal.out(`${paint(terminal, "bold", shown)}: repaired, ${report.kept} entries kept\n`);
  if (report.headerRebuilt) terminal.out("  the header was lost and is made anew\n");
  printLines(terminal, report, " was left out");
  if (report.bridged.length > 0)
    terminal.out(`  ${report.bridged.length} entries hang on the entry before the damage now\n`);
  terminal.out(`  as it was: ${wholeLine(report.backup)}\n`);
}

function printDamage(terminal: Terminal, name: string, report: RepairPayload): void {
  const shown = wholeLine(name);
  if (report.damaged.length === 0) {
    terminal.out(`${shown}: no damage, ${report.kept} entries\n`);
    return;
  }
  terminal.out(`${paint(terminal, "bold", shown)}: ${report.kept} entries can be read\n`);
  printLines(terminal, report, "");
  if (report.bridged.length > 0)
    terminal.out(`  ${report.bridged.length} entries are read as hanging on the entry before the damage\n`);
  terminal.out("  the log of a session is never rewritten; the damaged lines stay where they are\n");
  terminal.out(`  the log: ${wholeLine(report.file)}\n`);
}

function printLines(terminal: Terminal, { damaged }: RepairPayload, what: string): void {
  for (const { line, reason } of damaged.slice(0, mostLines))
    terminal.out(`  line ${line}${what}: ${oneLine(reason, terminal.columns)}\n`);
  if (damaged.length > mostLines) terminal.out(`  and ${damaged.length - mostLines} more lines\n`);
}
