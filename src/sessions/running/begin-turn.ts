import { SkeinError } from "../../core/errors.ts";
import type { Claim, Outcome, Run } from "../../runs/contract.ts";
import type { TurnModel } from "../../runtimes/contract.ts";
import type { SessionMeta } from "../../store/contract.ts";
import { childSystemBlock } from "../between/child-prompt.ts";
import { leaveTornCopies } from "../truncate-in-session.ts";
import { bringArrivals, bringInput, pointBack, promptOf } from "./bring-input.ts";
import type { AgentProfile, RunningDeps, RunPlace } from "./contract.ts";
import type { RunWriter } from "./run-writer.ts";

export interface TurnToBegin extends RunPlace {
  readonly agent: AgentProfile | null;
  readonly claim: Claim;
  readonly writer: RunWriter;
}

/** What was settled once, before the input: whoever goes on in the same turn goes on with it. */
export interface BegunTurn {
  readonly agent: AgentProfile;
  readonly model: TurnModel;
  readonly system: string | null;
}

/** Brings the input into the session, before anything is loaded or asked that may take its time. An outcome: it was refused. */
export async function beginTurn(deps: RunningDeps, turn: TurnToBegin): Promise<BegunTurn | Outcome> {
  const { scope, session, claim, writer, ctx } = turn;
  const { run } = claim;
  await leaveTornCopies(deps.store.sessions, scope, session.sessionId, { fence: writer.fence });
  const { key, sessionId, leafId } = session;
  await deps.hooks.notify("session_start", { key, sessionId, isNew: leafId === null, ctx });
  const agent = required(turn);
  const model = deps.models.turnModel(modelOf(run, session, agent));
  const { system, prepend } = await promptBuild(deps, turn, systemOf(run, agent, session.meta));
  const refused = await bring(deps, turn, model, prepend);
  if (refused !== null) return { state: "error", code: "refused", error: refused };
  return { agent, model, system };
}

/** Of an ACP agent the model is its own affair: what is wanted of it stands with the session. */
function modelOf({ options }: Run, { meta }: TurnToBegin["session"], agent: AgentProfile): string {
  if (agent.runtime !== "acp") return options.model ?? meta.model ?? agent.model;
  const model = options.model ?? meta.model;
  const thinking = options.thinking ?? meta.thinkingLevel;
  if (model === undefined && thinking === undefined) return agent.model;
  const asked = model === undefined ? `thinking ${thinking}` : `model ${model}`;
  const problem = `its model and its thinking are set once, when it is spawned; here it was asked for ${asked}`;
  const advice = "Leave that out, of the session's settings too, or spawn it anew with it";
  throw new SkeinError("acp_unsupported", { agent: agent.id, problem, advice });
}

function required({ agent, scope }: TurnToBegin): AgentProfile {
  if (agent !== null) return agent;
  throw new SkeinError("not_found", {
    what: "Agent",
    name: scope.agentId,
    advice: "Define it with defineAgent, or under agents in the configuration",
  });
}

/** Brings the input into the session; a reason: it was refused. */
async function bring(
  deps: RunningDeps,
  { claim, writer, ...place }: TurnToBegin,
  model: TurnModel,
  prepend: string | null,
): Promise<string | null> {
  const { run, how } = claim;
  const { runId, fence } = run;
  const seesImages = model.policy.images !== null;
  const { refused, wasThere } = await bringInput(deps, place, writer, run, { seesImages, prepend });
  if (claim.isOvertaken && wasThere) await pointBack(writer, run);
  // What it woke for comes first: until that is written, whoever takes it up wakes again.
  if (how === "woken" || claim.arrivals.length > 0) await bringArrivals(deps, place, writer, claim);
  if (refused === null) await deps.runs.written({ runId, fence });
  return refused;
}

/**
 * The run's own system prompt, else the agent's; what a spawned session is told and what is added stand behind it. Somebody
 * else's agent has none of our tools, and is told nothing of them.
 */
function systemOf({ options }: Run, agent: AgentProfile, meta: SessionMeta): string | null {
  const child = agent.runtime === "acp" ? null : childSystemBlock(meta);
  const parts = [options.system ?? agent.system, child, options.extraSystemPrompt];
  const text = parts.filter((part) => part !== null && part !== undefined && part.trim() !== "").join("\n\n");
  return text === "" ? null : text;
}

/** What hooks make of the system prompt, and put before the prompt. */
async function promptBuild(
  { hooks, store }: RunningDeps,
  { claim, scope, session, ctx }: TurnToBegin,
  system: string | null,
): Promise<{ readonly system: string | null; readonly prepend: string | null }> {
  if (!hooks.has("before_agent_start") && !hooks.has("before_prompt_build")) return { system, prepend: null };
  const prompt = promptOf(claim.run);
  const context = await store.sessions.context(scope, session.sessionId);
  const messages = context?.messages ?? [];
  const started = await hooks.ask("before_agent_start", { prompt, messages, ctx });
  const built = await hooks.ask("before_prompt_build", { system, prompt, messages, ctx });
  const prepend = [started.prependContext, built.prependContext].filter((text) => text !== null).join("\n\n");
  return { system: built.system, prepend: prepend === "" ? null : prepend };
}
