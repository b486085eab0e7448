import type { TurnModel } from "../../agents/contract.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Claim, Outcome } from "../../runs/contract.ts";
import type { TranscriptMessage } from "../../transcript/contract.ts";
import { isInserted } from "../../transcript/derive.ts";
import { leaveTornCopies } from "../truncate-in-session.ts";
import { bringArrivals, bringInput, pointBack, promptOf } from "./bring-input.ts";
import type { AgentProfile, RunningDeps, RunPlace } from "./contract.ts";
import type { TurnPlan } from "./plan-turn.ts";
import { planTurn } from "./plan-turn.ts";
import type { RunWriter } from "./run-writer.ts";
import { TurnRequests } from "./turn-request.ts";

export interface TurnToBegin extends RunPlace {
  readonly agent: AgentProfile | null;
  readonly claim: Claim;
  readonly writer: RunWriter;
}

/** What was settled once, before the input: whoever goes on in the same turn goes on with it. */
export interface BegunTurn extends TurnPlan {
  readonly agent: AgentProfile;
}

/** Brings the input into the session, before anything is loaded or asked that may take its time. An outcome: it was refused. */
export async function beginTurn(deps: RunningDeps, turn: TurnToBegin): Promise<BegunTurn | Outcome> {
  const { scope, session, claim, writer, ctx } = turn;
  const { run } = claim;
  await leaveTornCopies(deps.store.sessions, scope, session.sessionId, { fence: writer.fence });
  const { key, sessionId, leafId } = session;
  await deps.hooks.notify("session_start", { key, sessionId, isNew: leafId === null, ctx });
  const agent = required(turn);
  const plan = await planTurn(deps, turn, agent, run.options);
  const { model, thinkingLevel } = plan;
  const { system, prepend } = await askPromptHooks(deps, turn, plan);
  const refused = await bring(deps, turn, model, prepend);
  if (refused !== null) return { state: "error", code: "refused", error: refused };
  return { agent, model, system, thinkingLevel };
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
  const { run, held, how } = claim;
  const seesImages = model.policy.images !== null;
  const { refused, wasThere } = await bringInput(deps, place, writer, run, { seesImages, prepend });
  if (claim.isOvertaken && wasThere) await pointBack(writer, run);
  // What it woke for comes first: until that is written, whoever takes it up wakes again.
  if (how === "woken" || claim.arrivals.length > 0) await bringArrivals(deps, place, writer, claim);
  if (refused === null) await deps.runs.written(held);
  return refused;
}

/** The history as hooks see it: cleaned for the model, without what only fills a request up. */
export async function cleanedHistory(
  deps: Pick<RunningDeps, "store" | "settings" | "clock" | "shrink">,
  place: RunPlace,
  model: TurnModel,
): Promise<readonly TranscriptMessage[]> {
  const requests = new TurnRequests(deps, place, { model, system: null, tools: null });
  const { messages } = await requests.preview();
  return messages.filter((message) => !isInserted(message));
}

/** Lets hooks change the system prompt and add context before the prompt. */
async function askPromptHooks(
  deps: RunningDeps,
  turn: TurnToBegin,
  { model, system }: Pick<TurnPlan, "model" | "system">,
): Promise<{ readonly system: string | null; readonly prepend: string | null }> {
  const { hooks } = deps;
  if (!hooks.has("before_agent_start") && !hooks.has("before_prompt_build")) return { system, prepend: null };
  const prompt = promptOf(turn.claim.run);
  const messages = await cleanedHistory(deps, turn, model);
  const { ctx } = turn;
  const started = await hooks.ask("before_agent_start", { prompt, messages, ctx });
  const built = await hooks.ask("before_prompt_build", { system, prompt, messages, ctx });
  const prepend = [started.prependContext, built.prependContext].filter((text) => text !== null).join("\n\n");
  return { system: built.system, prepend: prepend === "" ? null : prepend };
}
