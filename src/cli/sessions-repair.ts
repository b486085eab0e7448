import type { Command } from "commander";
import type { CorruptReason } from "../core/entries.ts";
import { corruptReasonText } from "../core/parse-session.ts";
import type { RepairPayload } from "../protocol/session-views.ts";
import { damageIn } from "../sessions/tree-view.ts";
import { repairSessionFile } from "../store/files/lone-file.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, refHelp } from "./command.ts";
import { findSession, isFileName } from "./connection/resolve-session.ts";
import { withFolder } from "./connection/with-folder.ts";
import { printPayload } from "./output/answer.ts";
import { pluralize } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine, paint, pathFrom, wholeLine } from "./output/terminal.ts";

export function registerSessionsRepair(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", refHelp)
    .addHelpText("after", examples("skein sessions repair ./trip.jsonl", "skein sessions repair trip --json"))
    .action(action(context, repairSession));
}

const mostLines = 20;

/** Rewrites a damaged session file and keeps the original. A session's log is only inspected. */
async function repairSession(cli: Invocation, name: string): Promise<void> {
  const { terminal } = cli;
  const isFile = isFileName(name);
  const report: RepairPayload = isFile
    ? await repairSessionFile(pathFrom(terminal, name))
    : await withFolder(cli, async (folder) => {
        const record = await findSession(folder, name);
        const { upkeep } = folder.store;
        const files = upkeep.files(scopeOfSession(record), record.sessionId);
        const tree = await upkeep.readLog(record);
        return files === null || tree === null ? noSuchSession(record.sessionId) : damageIn(files.log, tree);
      });
  printPayload(cli, report, () => (isFile ? printRepair : printDamage)(terminal, wholeLine(name), report));
}

function printRepair(terminal: Terminal, name: string, report: RepairPayload): void {
  const { backup, kept, headerRebuilt, bridged } = report;
  if (backup === null) {
    terminal.out(`${name}: nothing to repair (${entries(kept)})\n`);
    return;
  }
  terminal.out(`${paint(terminal, "bold", name)}: repaired, ${entries(kept)} kept\n`);
  if (headerRebuilt) terminal.out("  the header was missing, so a new one was written\n");
  printLines(terminal, report, " was left out");
  if (bridged.length > 0)
    terminal.out(`  ${entries(bridged.length)} now attached to the entry before the damage\n`);
  terminal.out(`  original: ${wholeLine(backup)}\n`);
}

function printDamage(terminal: Terminal, name: string, report: RepairPayload): void {
  const { damaged, kept, bridged } = report;
  if (damaged.length === 0) {
    terminal.out(`${name}: no damage (${entries(kept)})\n`);
    return;
  }
  terminal.out(`${paint(terminal, "bold", name)}: ${entries(kept)} can be read\n`);
  printLines(terminal, report, "");
  if (bridged.length > 0)
    terminal.out(`  ${entries(bridged.length)} read as attached to the entry before the damage\n`);
  terminal.out("  a session's log is never rewritten, so the damaged lines stay in place\n");
  terminal.out(`  the log: ${wholeLine(report.file)}\n`);
}

function entries(count: number): string {
  return pluralize(count, "entry", "entries");
}

/** For a repaired file, the reason is a code. For a log, it is a sentence. */
function reasonText(reason: string): string {
  return Object.hasOwn(corruptReasonText, reason) ? corruptReasonText[reason as CorruptReason] : reason;
}

function printLines(terminal: Terminal, { damaged }: RepairPayload, what: string): void {
  for (const { line, reason } of damaged.slice(0, mostLines))
    terminal.out(`  line ${line}${what}: ${oneLine(reasonText(reason), terminal.columns)}\n`);
  if (damaged.length > mostLines) terminal.out(`  and ${damaged.length - mostLines} more lines\n`);
}
