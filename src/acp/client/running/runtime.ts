import type { Turn, TurnEnd } from "../../../agents/contract.ts";
import { unlessAborted } from "../../../core/abort.ts";
import { SkeinError } from "../../../core/errors.ts";
import type { Later } from "../../../core/later.ts";
import { later as reallyLater } from "../../../core/later.ts";
import type { MessageDraft } from "../../../core/seal.ts";
import { RunStopped } from "../../../runs/worker.ts";
import type { AcpDeps, AcpRuntime } from "../contract.ts";
import { unavailable } from "../unavailable.ts";
import { AcpTurn } from "./acp-turn.ts";
import type { Agent } from "./agent.ts";
import { startAgent } from "./agent.ts";
import { unsupported } from "./failures.ts";
import { AgentPool } from "./pool.ts";

/** Runs turns of sessions that stand for sessions of somebody else's agents. */
export function createAcpRuntime(deps: AcpDeps, later: Later = reallyLater): AcpRuntime {
  const { settings, clock, report } = deps;
  const pool = new AgentPool<Agent>({ settings, clock, later, report });
  return {
    run: (turn) => runTurn(deps, pool, turn),
    rest: (sessionId) => pool.rest(sessionId),
    release: (sessionId) => pool.release(sessionId),
    close: () => pool.close(),
  };
}

async function runTurn(deps: AcpDeps, pool: AgentPool<Agent>, turn: Turn): Promise<TurnEnd> {
  const { acp: link, signal, about } = turn;
  if (link === undefined) throw standsForNone(about.sessionKey);
  const spec = deps.agent(link.agent);
  if (spec === null)
    throw unavailable(link.agent, "nothing says how it is started", `Configure acp.agents.${link.agent}`);
  if (turn.outputSchema !== null)
    throw unsupported(
      link.agent,
      "its answers fit no schema",
      "Leave outputSchema out, and say in words what you need",
    );
  await closeOpenCalls(turn);
  const { startTimeoutMs } = deps.settings;
  const wish = { spec, cwd: about.cwd, owner: about, link, system: turn.system };
  // Another process has gone on with the session since: what the one that idles here knows of it is old.
  const idle = pool.idling(about.sessionId);
  if (idle !== null && idle.mark !== link.processMark)
    await unlessAborted(pool.release(about.sessionId), signal);
  const start = (until: AbortSignal) => startAgent({ ...deps, startTimeoutMs }, wish, until);
  const agent = await pool.acquire(link.agent, about.sessionId, start, signal);
  const acpTurn = new AcpTurn({ turn, link, agent, policy: spec.permissions, clock: deps.clock });
  let isTaken = false;
  try {
    if (agent.agentSessionId !== link.agentSessionId || agent.mark !== link.processMark)
      await link.remember(agent.agentSessionId, agent.mark);
    return await acpTurn.run();
  } catch (error) {
    isTaken = isAnothers(error) || isAnothers(signal.reason);
    throw error;
  } finally {
    // However its run ended, one that can be prompted again keeps what it knows.
    pool.done(about.sessionId, agent, link.mode === "session" && !acpTurn.isSpoilt && !isTaken);
  }
}

/** A key of the form alone makes no session of an agent's: somebody has written to it before it was spawned. */
function standsForNone(sessionKey: string): SkeinError {
  const problem = `the session ${sessionKey} stands for no session of an ACP agent`;
  const advice = 'Spawn one with sessions_spawn and runtime="acp"; its answer has the key to write to';
  return new SkeinError("invalid_arguments", { problem, advice });
}

/** Somebody else goes on with its run, and has an agent of its own for it. */
function isAnothers(why: unknown): boolean {
  if (why instanceof RunStopped) return why.why === "lost" || why.why === "closing";
  return why instanceof SkeinError && why.code === "fenced";
}

/** Calls of an agent whose process was lost: what came of them nobody knows. */
async function closeOpenCalls({ open, say }: Turn): Promise<void> {
  for (const { id, name } of open?.calls ?? []) {
    const text = "[skein] This call has no result: the process that ran the agent was lost before it did.";
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
