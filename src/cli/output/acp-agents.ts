import type { AcpAgentPayload, AcpAgentsPayload, FindingPayload } from "../../protocol/upkeep.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, pad, paint } from "./terminal.ts";

const longest = 2000;

/** What findings about ACP agents are about. */
export const acpArea = "acp";

/** What the doctor finds fault with: no agent is needed for anything but itself. */
export function acpFindings(agents: readonly AcpAgentPayload[]): FindingPayload[] {
  return agents
    .filter(({ answers }) => !answers)
    .map((agent) => ({
      area: acpArea,
      severity: "warning",
      file: `acp.agents.${agent.name}`,
      what: `The agent is not available: ${agent.problem ?? "it does not say why"}`,
      remedy: remedyOf(agent),
      fixable: false,
      fixed: false,
    }));
}

function remedyOf({ name, command, file, install }: AcpAgentPayload): string {
  if (file !== undefined) return `Start ${command} by hand, see what it says, and correct acp.agents.${name}`;
  const correct = `correct acp.agents.${name}.command`;
  return install === undefined ? `Install it, or ${correct}` : `Install it (${install}), or ${correct}`;
}

/** The agents that answer, and those that could be configured. */
export function printAcpAgents(terminal: Terminal, { agents, others }: AcpAgentsPayload): void {
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
    ? [`also here: ${here} add to acp.agents: ${entries}`]
    : [`found here: ${here} write into the configuration:`, "  acp:", `    agents: { ${entries} }`];
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
    abilities.length === 0 ? "begins sessions only" : `sessions: new, ${abilities.join(", ")}`,
    ...(authMethods === undefined || authMethods.length === 0
      ? []
      : [`signs in by ${authMethods.join(", ")}`]),
  ].join("; ");
}
