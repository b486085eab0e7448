import type { Runtime, Turn, TurnEnd } from "../../agents/contract.ts";
import type { AcpAgent } from "../../config/acp-agents.ts";
import type { Clock } from "../../core/clock.ts";
import { later as realLater, unlessAborted } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import type { MessageDraft } from "../../core/seal.ts";
import { RunStopped } from "../../runs/worker.ts";
import { AcpTurn } from "./acp-turn.ts";
import type { Agent } from "./agent.ts";
import type { PoolSettings } from "./agent-pool.ts";
import { AgentPool } from "./agent-pool.ts";
import { unavailable, unsupported } from "./errors.ts";
import type { StartOptions } from "./start-agent.ts";
import { startAgent } from "./start-agent.ts";

/** Runs other agents as child processes over the Agent Client Protocol. */
export interface AcpRuntime extends Runtime {
  /** Stops the process of a session's agent as soon as the agent is idle. */
  rest(sessionId: string): void;
  /**
   * Stops the process of a deleted session's agent after a grace period in which its aborted run can end on its own.
   */
  release(sessionId: string): Promise<void>;
  /** Resolves when no agent processes remain. */
  close(): Promise<void>;
}

export interface AcpRuntimeOptions extends Pick<StartOptions, "env" | "files"> {
  /** Returns `null` for an agent that is not configured. */
  agent(name: string): AcpAgent | null;
  readonly settings: PoolSettings & Pick<StartOptions, "startTimeoutMs">;
  readonly clock: Clock;
  report(error: unknown): void;
}

export function createAcpRuntime(options: AcpRuntimeOptions, later = realLater): AcpRuntime {
  const { settings, clock, report } = options;
  const pool = new AgentPool<Agent>({ settings, clock, later, report });
  return {
    run: (turn) => runTurn(options, pool, turn),
    rest: (sessionId) => pool.rest(sessionId),
    release: (sessionId) => pool.release(sessionId),
    close: () => pool.close(),
  };
}

async function runTurn(options: AcpRuntimeOptions, pool: AgentPool<Agent>, turn: Turn): Promise<TurnEnd> {
  const { acp: link, signal, about } = turn;
  if (link === undefined) throw noAgentSession(about.sessionKey);
  const spec = options.agent(link.agent);
  if (spec === null)
    throw unavailable(link.agent, "it is not configured", `Configure acp.agents.${link.agent}`);
  if (turn.outputSchema !== null) {
    const advice = "Omit outputSchema, and describe the result in the message";
    throw unsupported(link.agent, "it does not support an output schema", advice);
  }
  await closeOpenCalls(turn);
  // If another process has continued the session, the idle agent here has an outdated view of it.
  const idle = pool.idleAgent(about.sessionId);
  if (idle !== null && idle.mark !== link.processMark)
    await unlessAborted(pool.release(about.sessionId), signal);
  const { startTimeoutMs } = options.settings;
  const request = { spec, cwd: about.cwd, owner: about, link, system: turn.system };
  const start = (until: AbortSignal) => startAgent({ ...options, startTimeoutMs }, request, until);
  const agent = await pool.acquire(link.agent, about.sessionId, start, signal);
  const acpTurn = new AcpTurn({ turn, link, agent, policy: spec.permissions, clock: options.clock });
  let isTakenOver = false;
  try {
    if (agent.agentSessionId !== link.agentSessionId || agent.mark !== link.processMark)
      await link.remember(agent.agentSessionId, agent.mark);
    return await acpTurn.run();
  } catch (error) {
    isTakenOver = continuesElsewhere(error) || continuesElsewhere(signal.reason);
    throw error;
  } finally {
    // In `session` mode, an agent that can be prompted again stays ready, regardless of how its run ended.
    pool.done(about.sessionId, agent, link.mode === "session" && !acpTurn.isBroken && !isTakenOver);
  }
}

/** Returns the error for a message to an ACP key for which no agent has been spawned. */
function noAgentSession(sessionKey: string): SkeinError {
  const problem = `the session ${sessionKey} does not belong to an ACP agent`;
  const advice = 'Spawn one with sessions_spawn and runtime="acp"; the result contains the key to write to';
  return new SkeinError("invalid_arguments", { problem, advice });
}

/** Whether another process will continue the run with its own agent. */
function continuesElsewhere(reason: unknown): boolean {
  if (reason instanceof RunStopped) return reason.why === "lost" || reason.why === "closing";
  return reason instanceof SkeinError && reason.code === "fenced";
}

/** Writes results for the unfinished calls of an agent whose process was lost. Their real results are unknown. */
async function closeOpenCalls({ open, say }: Turn): Promise<void> {
  for (const { id, name } of open?.calls ?? []) {
    const text =
      "[skein] This call has no result, because the agent's process was lost before it returned one.";
    const result: MessageDraft = {
      role: "toolResult",
      toolCallId: id,
      toolName: name,
      content: [{ type: "text", text }],
      isError: true,
    };
    await say(result);
  }
}
