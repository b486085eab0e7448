import type { AcpRuntime } from "../acp/client/acp-runtime.ts";
import type { ProbeResult } from "../acp/client/probe-agent.ts";
import type { Runtime } from "../agents/contract.ts";
import { findCommand } from "../agents/process/find-command.ts";
import { childEnv } from "../agents/process/start-process.ts";
import type { AcpAgent } from "../config/acp-agents.ts";
import { acpAgentOf, acpInstall, acpNames } from "../config/acp-agents.ts";
import { acpPresets } from "../config/sections/acp-presets.ts";
import type { Config } from "../config/sections/all.ts";
import { isAcpKey } from "../core/keys.ts";
import type { AcpAgentPayload, AcpAgentsPayload } from "../protocol/command-payloads.ts";
import { agentSessionIdOf, untilAgentSessionId } from "../sessions/acp-link.ts";
import type { AcpAgents, App } from "../sessions/app.ts";
import { redactorOf } from "./redaction.ts";

/** The ACP agents, and the runtime for their turns. */
export interface Acp extends AcpAgents {
  readonly runtime: Runtime;
  close(): Promise<void>;
}

/** Updates a session's agent when the session changes. */
const actOn: Readonly<Record<string, (runtime: AcpRuntime, sessionId: string) => Promise<void> | void>> = {
  "session.archived": (runtime, sessionId) => runtime.rest(sessionId),
  "session.deleted": (runtime, sessionId) => runtime.release(sessionId),
  "session.reset": (runtime, sessionId) => runtime.release(sessionId),
};

export function openAcp(app: App, env: Readonly<Record<string, string | undefined>>): Acp {
  const { config, events, files, clock, report } = app;
  const { agents, defaultAgent, maxConcurrentSessions } = config.acp;
  const { idleMinutes, startTimeoutSeconds } = config.acp;
  const configured = Object.keys(agents).filter((name) => acpAgentOf(config, name) !== null);
  const serves = (agentId: string, key: string) => isAcpKey(key) && configured.includes(agentId);
  const startTimeoutMs = startTimeoutSeconds * 1000;
  let opened: Promise<AcpRuntime> | null = null;
  const open = () => {
    opened ??= import("../acp/client/acp-runtime.ts").then(({ createAcpRuntime }) =>
      createAcpRuntime({
        agent: (name) => acpAgentOf(config, name),
        settings: { maxConcurrentSessions, idleMs: idleMinutes * 60_000, startTimeoutMs },
        env,
        files,
        clock,
        report,
      }),
    );
    return opened;
  };
  const stop = events.subscribe(({ type, sessionId }) => {
    const act = actOn[type];
    if (opened !== null && act !== undefined)
      void opened.then((runtime) => act(runtime, sessionId)).catch(report);
  });
  return {
    runtime: { run: async (turn) => (await open()).run(turn) },
    names: acpNames(config),
    defaultAgent,
    // Without workers, there might be no process to report the ID.
    untilAgentSessionId: (run, signal) =>
      app.hasWorkers()
        ? untilAgentSessionId(app, run, startTimeoutMs, signal)
        : agentSessionIdOf(app.store, run.session),
    serves,
    profile: ({ agentId, key }) =>
      serves(agentId, key) ? { ...acpProfile, id: agentId, model: `acp/${agentId}` } : null,
    close: async () => {
      stop();
      await (await opened)?.close();
    },
  };
}

/** The agent's own work is limited only by time and budget. */
const acpProfile = {
  runtime: "acp",
  system: null,
  thinking: null,
  maxSteps: Number.MAX_SAFE_INTEGER,
  maxOutputTokens: null,
  state: () => [],
  onDemand: [],
} as const;

export interface LookOptions {
  /** The source of PATH, HOME and LANG. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The timeout per agent. */
  readonly timeoutMs: number;
  readonly onProgress?: (done: number, total: number) => void;
}

/** How many agents are started concurrently. */
const mostAtOnce = 4;

/** Briefly starts every configured ACP agent and queries its capabilities. Secrets are masked in error messages. */
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

/** Probes an agent. The ACP client is loaded on first use. */
async function probe(agent: AcpAgent, options: LookOptions): Promise<ProbeResult> {
  const { probeAgent } = await import("../acp/client/probe-agent.ts");
  return probeAgent(agent, options);
}

function payloadOf(probed: ProbeResult): Pick<AcpAgentPayload, "answers"> & Partial<AcpAgentPayload> {
  if (!probed.answers) return probed;
  const { name, authMethods, ...rest } = probed;
  return { ...rest, ...(name === undefined ? {} : { title: name }), authMethods: [...authMethods] };
}

/** Finds other installed agents without starting them. */
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
