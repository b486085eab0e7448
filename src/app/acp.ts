import type { AcpRuntime } from "../acp/client/acp-runtime.ts";
import type { Runtime } from "../agents/contract.ts";
import { acpAgentOf, acpNames } from "../config/acp-agents.ts";
import { isAcpKey } from "../core/keys.ts";
import { agentSessionIdOf, untilAgentSessionId } from "../sessions/acp-link.ts";
import type { AcpAgents, App } from "../sessions/app.ts";

/** The ACP agents, with what runs their turns. */
export interface Acp extends AcpAgents {
  readonly runtime: Runtime;
  close(): Promise<void>;
}

/** What happens to the agent of a session with the session. */
const actOn: Readonly<Record<string, (runtime: AcpRuntime, sessionId: string) => Promise<void> | void>> = {
  "session.archived": (runtime, sessionId) => runtime.rest(sessionId),
  "session.deleted": (runtime, sessionId) => runtime.release(sessionId),
  "session.reset": (runtime, sessionId) => runtime.release(sessionId),
};

export function openAcp(app: App, env: Readonly<Record<string, string | undefined>>): Acp {
  const { config, bus, files, clock, report } = app;
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
  const stop = bus.subscribe(({ type, sessionId }) => {
    const act = actOn[type];
    if (opened !== null && act !== undefined)
      void opened.then((runtime) => act(runtime, sessionId)).catch(report);
  });
  return {
    runtime: { run: async (turn) => (await open()).run(turn) },
    names: acpNames(config),
    defaultAgent,
    // Where nobody is at work, there may be nobody to tell it.
    untilAgentSessionId: (run, signal) =>
      app.isWorking
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

/** Whatever the agent does by itself is not ours to bound but by time and budget. */
const acpProfile = {
  runtime: "acp",
  system: null,
  thinking: null,
  maxSteps: Number.MAX_SAFE_INTEGER,
  maxOutputTokens: null,
  state: () => [],
  onDemand: [],
} as const;
