import type { TurnModel } from "../../agents/contract.ts";
import { SkeinError } from "../../core/errors.ts";
import type { RunOptions } from "../../runs/contract.ts";
import type { SessionMeta } from "../../store/contract.ts";
import { childSystemBlock } from "../between/child-prompt.ts";
import type { AgentProfile, RunningDeps, RunPlace } from "./contract.ts";

/** What agent, session and run settle before the first request. */
export interface TurnPlan {
  readonly model: TurnModel;
  /** Before hooks have changed it. */
  readonly system: string | null;
  readonly thinkingLevel: string;
}

/** Settles the model, the system prompt and the thinking level of a turn. */
export async function planTurn(
  deps: Pick<RunningDeps, "models" | "store">,
  place: Pick<RunPlace, "scope" | "session">,
  agent: AgentProfile,
  options: RunOptions,
): Promise<TurnPlan> {
  const { meta } = place.session;
  return {
    model: deps.models.turnModel(chooseModel(options, meta, agent)),
    system: joinSystem(options, agent, meta),
    thinkingLevel: await chooseThinkingLevel(deps, place, agent, options),
  };
}

/** The model of an ACP agent is set when it is spawned; a run cannot choose another. */
function chooseModel(options: RunOptions, meta: SessionMeta, agent: AgentProfile): string {
  if (agent.runtime !== "acp") return options.model ?? meta.model ?? agent.model;
  const model = options.model ?? meta.model;
  const thinking = options.thinking ?? meta.thinkingLevel;
  if (model === undefined && thinking === undefined) return agent.model;
  const asked = model === undefined ? `thinking ${thinking}` : `model ${model}`;
  const problem = `its model and its thinking are set once, when it is spawned; here it was asked for ${asked}`;
  const advice = "Leave that out, of the session's settings too, or spawn it again with it";
  throw new SkeinError("acp_unsupported", { agent: agent.id, problem, advice });
}

/**
 * The run's system prompt replaces the agent's. The sub-agent block and `extraSystemPrompt` follow it. An ACP agent gets
 * no sub-agent block, because it does not have the tools that the block describes.
 */
function joinSystem(options: RunOptions, agent: AgentProfile, meta: SessionMeta): string | null {
  const child = agent.runtime === "acp" ? null : childSystemBlock(meta);
  const parts = [options.system ?? agent.system, child, options.extraSystemPrompt];
  const text = parts.filter((part) => part !== null && part !== undefined && part.trim() !== "").join("\n\n");
  return text === "" ? null : text;
}

/** The run's level, else the one set for the session, else the one in its entries, else the agent's. */
async function chooseThinkingLevel(
  { store }: Pick<RunningDeps, "store">,
  { scope, session }: Pick<RunPlace, "scope" | "session">,
  agent: AgentProfile,
  options: RunOptions,
): Promise<string> {
  const given = options.thinking ?? session.meta.thinkingLevel;
  if (given !== undefined) return given;
  const context = await store.sessions.context(scope, session.sessionId, { byteBudget: 1 });
  const written = context?.thinkingLevel ?? "off";
  // A context says "off" too where no entry sets a level.
  return written === "off" ? (agent.thinking ?? "off") : written;
}
