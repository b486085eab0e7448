import type { AcpRuntime } from "../acp/client/acp-runtime.ts";
import type { Runtime } from "../agents/contract.ts";
import { acpAgentOf, acpNames } from "../config/acp-agents.ts";
import type { Config } from "../config/sections/all.ts";
import type { Clock } from "../core/clock.ts";
import type { EventBus } from "../core/events.ts";
import { isAcpKey } from "../core/keys.ts";
import type { FileBoundary } from "../file-access/file-boundary.ts";
import type { AgentProfile } from "../sessions/running.ts";
import type { SessionRecord } from "../store/contract.ts";

export interface AcpParts {
  readonly config: Pick<Config, "acp">;
  readonly bus: EventBus;
  readonly files: FileBoundary;
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string | undefined>>;
  report(error: unknown): void;
}

/** The ACP agents of the configuration; nothing of them is loaded or started until a run asks for one. */
export interface Acp {
  readonly runtime: Runtime;
  /** Those that may be spawned, by name. */
  readonly names: readonly string[];
  readonly defaultAgent: string | null;
  readonly startTimeoutMs: number;
  /** Whether runs of this session are done here: it stands for a session of a configured agent. */
  serves(agentId: string, key: string): boolean;
  /** The agent of such a session; `null`: it is of another kind, or nobody has configured it. */
  profile(session: Pick<SessionRecord, "agentId" | "key">): AgentProfile | null;
  close(): Promise<void>;
}

/** What happens to the agent of a session with the session. */
const actOn: Readonly<Record<string, (runtime: AcpRuntime, sessionId: string) => Promise<void> | void>> = {
  "session.archived": (runtime, sessionId) => runtime.rest(sessionId),
  "session.deleted": (runtime, sessionId) => runtime.release(sessionId),
  "session.reset": (runtime, sessionId) => runtime.release(sessionId),
};

export function openAcp({ config, bus, files, clock, env, report }: AcpParts): Acp {
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
    startTimeoutMs,
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
