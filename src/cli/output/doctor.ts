import { escapeUnprintable } from "../../core/text.ts";
import type { DoctorPayload, FindingPayload } from "../../protocol/upkeep.ts";
import { acpArea, printAcpAgents } from "./acp-agents.ts";
import type { GlobalOptions } from "./global-options.ts";
import { commandLine } from "./global-options.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, pad, paint } from "./terminal.ts";

const longest = 2000;
const colors = { note: "dim", warning: "yellow", error: "red" } as const;

/** What the doctor found, for people. */
export function printDoctor(terminal: Terminal, found: DoctorPayload, options: GlobalOptions): void {
  const { node, folder, configuration, findings, acp, maintenance } = found;
  const line = (text: string) => terminal.out(`${text}\n`);
  const title = (text: string) => line(`\n${paint(terminal, "bold", text)}`);
  const row = (name: string, text: string) =>
    line(`${paint(terminal, "bold", pad(name, 15))}${oneLine(text, longest)}`);
  row("Node", node.ok ? node.version : `${node.version}, but ${node.needed} is needed`);
  row("Folder", `${folder.path} (${folder.from})${folder.exists ? "" : ": no sessions there yet"}`);
  row("Configuration", configuration.file ?? "no file, the defaults hold");
  for (const problem of configuration.problems) {
    line(`  ${paint(terminal, "red", "error")}    ${oneLine(problem, longest)}`);
  }
  title("Files and ports");
  const ofFiles = findings.filter(({ area }) => area !== acpArea);
  if (ofFiles.length === 0) line("  nothing to be found fault with");
  for (const finding of ofFiles) printFinding(terminal, finding);
  if (findings.some(({ fixable, fixed }) => fixable && !fixed)) {
    line(
      `  to mend what can be mended: ${oneLine(commandLine(terminal, options, ["doctor", "--fix"]), longest)}`,
    );
  }
  if (acp.agents.length + acp.others.length > 0) {
    title("ACP agents");
    printAcpAgents(terminal, acp);
    for (const finding of findings) if (finding.area === acpArea) printFinding(terminal, finding);
  }
  title(`Maintenance (${maintenance.mode})`);
  if (maintenance.decisions.length === 0) line("  nothing to do");
  for (const { action, key, userId, why } of maintenance.decisions) {
    const whose = userId === undefined ? key : `${key} of ${userId}`;
    line(`  ${pad(action, 8)} ${oneLine(`${whose}: ${why}`, longest)}`);
  }
  title("Configuration in effect");
  for (const each of configuration.effective.trimEnd().split("\n")) line(`  ${escapeUnprintable(each)}`);
}

function printFinding(terminal: Terminal, finding: FindingPayload): void {
  const { severity, file, what, remedy, fixed } = finding;
  const sign = fixed
    ? paint(terminal, "green", pad("mended", 8))
    : paint(terminal, colors[severity], pad(severity, 8));
  terminal.out(`  ${sign} ${oneLine(`${file}: ${sentence(what)} ${sentence(remedy)}`, longest)}\n`);
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
