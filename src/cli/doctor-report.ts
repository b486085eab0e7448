import { escapeUnprintable } from "../core/text.ts";
import type {
  AcpAgentPayload,
  AcpAgentsPayload,
  ChatChannelPayload,
  DoctorPayload,
  FindingPayload,
  McpServerPayload,
} from "../protocol/command-payloads.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine, pad, paint, wholeLine } from "./output/terminal.ts";

const longest = 2000;
const colors = { note: "dim", warning: "yellow", error: "red" } as const;

/**
 * Prints the configuration last because it is the longest part. `changed` lists the settings that differ from the
 * defaults.
 */
export function printDoctor(
  cli: Invocation<{ readonly all?: boolean }>,
  found: DoctorPayload,
  changed: string,
): void {
  const { terminal } = cli;
  const { node, folder, database, configuration, findings, acp, mcp, channels, maintenance } = found;
  const line = (text: string) => terminal.out(`${text}\n`);
  const title = (text: string) => line(`\n${paint(terminal, "bold", text)}`);
  const row = (name: string, text: string) =>
    line(`${paint(terminal, "bold", pad(name, 15))}${oneLine(text, longest)}`);
  row("Node", node.ok ? node.version : `${node.version}, but ${node.needed} is required`);
  const isEmpty = database === undefined && !folder.exists;
  row("Folder", `${folder.path} (${folder.from})${isEmpty ? ": no sessions yet" : ""}`);
  if (database !== undefined) row("Database", database);
  row("Configuration", configuration.file ?? "no file; the defaults apply");
  for (const problem of configuration.problems) {
    line(`  ${paint(terminal, "red", "error")}    ${oneLine(problem, longest)}`);
  }
  title("Files and ports");
  const ofFiles = findings.filter(({ area }) => ![acpArea, mcpArea, channelArea].includes(area));
  if (ofFiles.length === 0) line("  no problems found");
  for (const finding of ofFiles) printFinding(terminal, finding);
  if (findings.some(({ fixable, fixed }) => fixable && !fixed)) {
    line(
      `  to fix what can be fixed automatically: ${oneLine(commandLine(cli, "doctor", "--fix"), longest)}`,
    );
  }
  if (acp.agents.length + acp.others.length > 0) {
    title("ACP agents");
    printAcpAgents(terminal, acp);
    for (const finding of findings) if (finding.area === acpArea) printFinding(terminal, finding);
  }
  if (mcp.length > 0) {
    title("MCP servers");
    for (const { name, answers, tools } of mcp) {
      if (answers) line(`  ${paint(terminal, "green", pad("answers", 8))} ${name}: ${tools} tools`);
    }
    for (const finding of findings) if (finding.area === mcpArea) printFinding(terminal, finding);
  }
  if (channels.length > 0) {
    title("Chat channels");
    for (const { name, platform, packages, problem } of channels) {
      const versions = packages.map((each) => `${each.name} ${each.version}`).join(", ");
      if (problem === undefined)
        line(`  ${paint(terminal, "green", pad("ready", 8))} ${name}: ${platform}, ${versions}`);
    }
    for (const finding of findings) if (finding.area === channelArea) printFinding(terminal, finding);
  }
  const does = maintenance.mode === "enforce" ? "the gateway will do this within the hour" : "report only";
  title(`Maintenance (mode: ${maintenance.mode}, ${does})`);
  if (maintenance.decisions.length === 0) line("  nothing to do");
  for (const { action, key, userId, why } of maintenance.decisions) {
    const whose = userId === undefined ? key : `${key} of ${userId}`;
    line(`  ${pad(`would ${action}`, 14)} ${oneLine(`${whose}: ${why}`, longest)}`);
  }
  if (maintenance.explained !== undefined) {
    title(`Maintenance for ${maintenance.explained.key}`);
    for (const each of maintenance.explained.lines) line(`  ${oneLine(each, longest)}`);
  }
  title("Effective configuration");
  printSettings(cli, configuration.effective, changed);
}

/** Returns a problem that `--fix` cannot repair and that does not prevent Skein from running. */
export function warning(area: string, file: string, what: string, remedy: string): FindingPayload {
  return { area, severity: "warning", file, what, remedy, fixable: false, fixed: false };
}

const mcpArea = "mcp";

/** Returns only warnings, because agents run without the tools of a server that does not respond. */
export function mcpFindings(servers: readonly McpServerPayload[]): FindingPayload[] {
  return servers
    .filter(({ answers }) => !answers)
    .map(({ name, problem }) => {
      const what = `The server does not respond: ${problem ?? "no reason was given"}`;
      const remedy = `Check its command or url in mcpServers.${name}; agents run without its tools until it responds`;
      return warning(mcpArea, `mcpServers.${name}`, what, remedy);
    });
}

const channelArea = "channels";

/** These are warnings, because other channels and commands still work. */
export function channelFindings(channels: readonly ChatChannelPayload[]): FindingPayload[] {
  return channels.flatMap(({ name, problem, remedy }) =>
    problem === undefined || remedy === undefined
      ? []
      : [warning(channelArea, `channels.${name}`, problem, remedy)],
  );
}

function printSettings(
  cli: Invocation<{ readonly all?: boolean }>,
  effective: string,
  changed: string,
): void {
  const { terminal, options } = cli;
  const line = (text: string) => terminal.out(`  ${text}\n`);
  const text = (options.all === true ? effective : changed).trimEnd();
  if (text !== "") for (const each of text.split("\n")) line(escapeUnprintable(each));
  if (options.all === true) return;
  const rest = text === "" ? "nothing is set; the defaults apply" : "all other settings have their defaults";
  const toSeeAll = wholeLine(commandLine(cli, "doctor", "--all"));
  line(paint(terminal, "dim", `${rest}; to show all settings: ${toSeeAll}`));
}

function printFinding(terminal: Terminal, finding: FindingPayload): void {
  const { severity, file, what, remedy, fixed } = finding;
  const sign = fixed
    ? paint(terminal, "green", pad("fixed", 8))
    : paint(terminal, colors[severity], pad(severity, 8));
  terminal.out(`  ${sign} ${oneLine(`${file}: ${sentence(what)} ${sentence(remedy)}`, longest)}\n`);
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

const acpArea = "acp";

/** Returns only warnings, because an agent that does not respond affects nothing else. */
export function acpFindings(agents: readonly AcpAgentPayload[]): FindingPayload[] {
  return agents
    .filter(({ answers }) => !answers)
    .map((agent) => {
      const what = `The agent is not available: ${agent.problem ?? "no reason was given"}`;
      return warning(acpArea, `acp.agents.${agent.name}`, what, remedyOf(agent));
    });
}

function remedyOf({ name, command, file, install }: AcpAgentPayload): string {
  if (file !== undefined) return `Run ${command} manually, check its output, and correct acp.agents.${name}`;
  const correct = `correct acp.agents.${name}.command`;
  return install === undefined ? `Install it, or ${correct}` : `Install it (${install}), or ${correct}`;
}

function printAcpAgents(terminal: Terminal, { agents, others }: AcpAgentsPayload): void {
  const line = (text: string) => terminal.out(`${text}\n`);
  for (const agent of agents) {
    if (!agent.answers) continue;
    line(`  ${paint(terminal, "green", pad("answers", 8))} ${oneLine(agentText(agent), longest)}`);
  }
  if (others.length > 0) printOthers(terminal, others, agents.length > 0);
}

function printOthers(terminal: Terminal, others: AcpAgentsPayload["others"], areSome: boolean): void {
  const here = `${others.map(({ title }) => title).join(", ")}; to let sessions spawn them,`;
  const entries = others.map(({ name }) => `${name}: {}`).join(", ");
  const lines = areSome
    ? [`also installed: ${here} add this to acp.agents: ${entries}`]
    : [`installed: ${here} add this to the configuration:`, "  acp:", `    agents: { ${entries} }`];
  for (const each of lines) terminal.out(`  ${each}\n`);
}

function agentText({
  name,
  command,
  file,
  title,
  version,
  can,
  authMethods,
  ...more
}: AcpAgentPayload): string {
  const who = [title, version].filter((each) => each !== undefined).join(" ");
  const rights = [...(more.isDefault ? ["the default"] : []), ...(more.isAllowed ? [] : ["not allowed"])];
  const known = ["load", "resume", "fork", "list"] as const;
  const abilities = known.filter((each) => can?.[each] === true);
  return [
    `${name}: ${who === "" ? command : who}${rights.length === 0 ? "" : ` (${rights.join(", ")})`}`,
    file ?? command,
    abilities.length === 0 ? "new sessions only" : `sessions: new, ${abilities.join(", ")}`,
    ...(authMethods === undefined || authMethods.length === 0 ? [] : [`sign-in: ${authMethods.join(", ")}`]),
  ].join("; ");
}
