import type { ProbeResult } from "../acp/client/probe-agent.ts";
import { findCommand } from "../agents/process/find-command.ts";
import { childEnv } from "../agents/process/start-process.ts";
import type { AcpAgent } from "../config/acp-agents.ts";
import { acpAgentOf, acpInstall } from "../config/acp-agents.ts";
import { acpPresets } from "../config/sections/acp-presets.ts";
import type { Config } from "../config/sections/all.ts";
import type { AcpAgentPayload, AcpAgentsPayload } from "../protocol/command-payloads.ts";
import { redactorOf } from "./redaction.ts";

export interface LookOptions {
  /** What PATH, HOME and LANG are taken from. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Of each agent. */
  readonly timeoutMs: number;
  readonly onProgress?: (done: number, total: number) => void;
}

/** So many agents are started at once. */
const mostAtOnce = 4;

/** Starts every configured ACP agent for a moment and asks what it is. Secrets are masked in their complaints. */
export async function lookAtAcp(config: Config, options: LookOptions): Promise<AcpAgentsPayload> {
  const agents = Object.keys(config.acp.agents).flatMap((name) => acpAgentOf(config, name) ?? []);
  const redactor = redactorOf({ config, variable: (name) => options.env[name] });
  const found: AcpAgentPayload[] = [];
  const queue = [...agents.entries()];
  let done = 0;
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, agent] = next;
      const looked = await lookAt(agent, config, options);
      const { problem } = looked;
      found[index] = problem === undefined ? looked : { ...looked, problem: redactor.redact(problem).text };
      options.onProgress?.(++done, agents.length);
    }
  };
  await Promise.all(Array.from({ length: mostAtOnce }, work));
  return { agents: found, others: await findOthers(agents, options) };
}

async function lookAt(agent: AcpAgent, { acp }: Config, options: LookOptions): Promise<AcpAgentPayload> {
  const { name, command } = agent;
  const file = await findCommand(command, childEnv(options.env, agent.env), options.cwd);
  const probed = await probe(agent, options);
  const install = file === null ? acpInstall(agent) : null;
  return {
    name,
    command,
    ...(file === null ? {} : { file }),
    isAllowed: acp.allowedAgents.length === 0 || acp.allowedAgents.includes(name),
    isDefault: acp.defaultAgent === name,
    ...(install === null ? {} : { install }),
    ...payloadOf(probed),
  };
}

/** The protocol is loaded when there is somebody to speak it with. */
async function probe(agent: AcpAgent, options: LookOptions): Promise<ProbeResult> {
  const { probeAgent } = await import("../acp/client/probe-agent.ts");
  return probeAgent(agent, options);
}

function payloadOf(probed: ProbeResult): Pick<AcpAgentPayload, "answers"> & Partial<AcpAgentPayload> {
  if (!probed.answers) return probed;
  const { name, authMethods, ...rest } = probed;
  return { ...rest, ...(name === undefined ? {} : { title: name }), authMethods: [...authMethods] };
}

/** Nothing is started of them. */
async function findOthers(
  configured: readonly AcpAgent[],
  { env, cwd }: LookOptions,
): Promise<AcpAgentsPayload["others"]> {
  const others: AcpAgentsPayload["others"] = [];
  for (const [name, { title, command }] of Object.entries(acpPresets)) {
    if (configured.some((agent) => agent.name === name || agent.command === command)) continue;
    const file = await findCommand(command, { PATH: env.PATH }, cwd);
    if (file !== null) others.push({ name, title, file });
  }
  return others;
}
