import type { Command } from "commander";
import { logPath, readLog } from "../app/folder.ts";
import type { CorruptReason } from "../core/entries.ts";
import { corruptReasonText } from "../core/parse-session.ts";
import type { RepairPayload } from "../protocol/session-views.ts";
import { damageIn } from "../sessions/tree-view.ts";
import { repairSessionFile } from "../store/files/lone-file.ts";
import type { CommandContext } from "./command.ts";
import { examples, refHelp } from "./command.ts";
import { findSession, isFileName } from "./connection/resolve-session.ts";
import { withFolder } from "./connection/with-folder.ts";
import { pluralize } from "./output/format.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine, paint, pathFrom, printJson, wholeLine } from "./output/terminal.ts";

export function registerSessionsRepair(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", refHelp)
    .addHelpText("after", examples("skein sessions repair ./trip.jsonl", "skein sessions repair trip --json"))
    .action((ref: string) => repairSession(terminal, ref, command.optsWithGlobals()));
}

const mostLines = 20;

/** Rewrites a damaged session file and keeps the original. The log of a session is only inspected. */
async function repairSession(terminal: Terminal, name: string, options: GlobalOptions): Promise<void> {
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
    terminal.out(`${shown}: nothing to repair, ${entries(report.kept)}\n`);
    return;
  }
  terminal.out(`${paint(terminal, "bold", shown)}: repaired, ${entries(report.kept)} kept\n`);
  if (report.headerRebuilt) terminal.out("  the header was lost; a new one was written\n");
  printLines(terminal, report, " was left out");
  if (report.bridged.length > 0)
    terminal.out(`  ${entries(report.bridged.length)} now attached to the entry before the damage\n`);
  terminal.out(`  as it was: ${wholeLine(report.backup)}\n`);
}

function printDamage(terminal: Terminal, name: string, report: RepairPayload): void {
  const shown = wholeLine(name);
  if (report.damaged.length === 0) {
    terminal.out(`${shown}: no damage, ${entries(report.kept)}\n`);
    return;
  }
  terminal.out(`${paint(terminal, "bold", shown)}: ${entries(report.kept)} can be read\n`);
  printLines(terminal, report, "");
  if (report.bridged.length > 0)
    terminal.out(`  ${entries(report.bridged.length)} read as attached to the entry before the damage\n`);
  terminal.out("  the log of a session is never rewritten; the damaged lines stay where they are\n");
  terminal.out(`  the log: ${wholeLine(report.file)}\n`);
}

function entries(count: number): string {
  return pluralize(count, "entry", "entries");
}

/** A repaired file has a code as the reason, a log has a text. */
function reasonText(reason: string): string {
  return Object.hasOwn(corruptReasonText, reason) ? corruptReasonText[reason as CorruptReason] : reason;
}

function printLines(terminal: Terminal, { damaged }: RepairPayload, what: string): void {
  for (const { line, reason } of damaged.slice(0, mostLines))
    terminal.out(`  line ${line}${what}: ${oneLine(reasonText(reason), terminal.columns)}\n`);
  if (damaged.length > mostLines) terminal.out(`  and ${damaged.length - mostLines} more lines\n`);
}
