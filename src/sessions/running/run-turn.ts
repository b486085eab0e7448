import { SkeinError } from "../../core/errors.ts";
import type { Claim, Outcome, Run } from "../../runs/contract.ts";
import { recoveryOf } from "../../runs/recovery.ts";
import type { TurnEnd, TurnModel } from "../../runtimes/contract.ts";
import { leaveTornCopies } from "../truncate-in-session.ts";
import { bringArrivals, bringInput, promptOf } from "./bring-input.ts";
import type { AgentProfile, RunningDeps, RunPlace } from "./contract.ts";
import { lastAnswer } from "./last-answer.ts";
import type { RunWriter } from "./run-writer.ts";
import { tailOf } from "./run-writer.ts";
import { turnPorts } from "./turn-ports.ts";

export interface TurnToRun extends RunPlace {
  readonly agent: AgentProfile | null;
  readonly claim: Claim;
  readonly writer: RunWriter;
  readonly signal: AbortSignal;
  /** It wanted to sleep, and there was nothing to wait for. */
  readonly isAwake?: boolean;
}

/** The turn of a claimed run, from wherever the session stands. */
export async function runTurn(deps: RunningDeps, turn: TurnToRun): Promise<TurnEnd | Outcome> {
  const { scope, session, claim, writer, signal, ctx } = turn;
  const { run } = claim;
  await leaveTornCopies(deps.store.sessions, scope, session.sessionId, { fence: writer.fence });
  const { key, sessionId, leafId } = session;
  await deps.hooks.notify("session_start", { key, sessionId, isNew: leafId === null, ctx });
  const agent = required(turn);
  const model = deps.models.turnModel(run.options.model ?? session.meta.model ?? agent.model);
  const tools = await deps.tools(agent, session, run);
  const prompted = await promptBuild(deps, turn, systemOf(run, agent));
  const refused = await bring(deps, turn, model, prompted.prepend);
  if (refused !== null) return { state: "error", code: "refused", error: refused };
  const closed = claim.how === "new" ? null : await recovered(deps, turn);
  if (closed !== null) return closed;
  signal.throwIfAborted();
  const { system } = prompted;
  const parts = { place: turn, agent, run, writer, signal, model, system, tools };
  const ports = await turnPorts(deps, parts);
  if (session.meta.systemSent !== true)
    await deps.store.sessions.patch(scope, sessionId, { systemSent: true });
  return deps.runtime.run(ports);
}

function required({ agent, scope }: TurnToRun): AgentProfile {
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
  { claim, writer, ...place }: TurnToRun,
  model: TurnModel,
  prepend: string | null,
): Promise<string | null> {
  const { run, how } = claim;
  const { runId, fence } = run;
  const seesImages = model.policy.images !== null;
  const { refused } = await bringInput(deps, place, writer, run, { seesImages, prepend });
  // What it woke for comes first: until that is written, whoever takes it up wakes again.
  if (how === "woken" || claim.arrivals.length > 0) await bringArrivals(deps, place, writer, claim);
  if (refused === null) await deps.runs.written({ runId, fence });
  return refused;
}

/** What a lost owner left: text that it had streamed, and a branch that says how to go on. `null`: the turn goes on. */
async function recovered(
  deps: RunningDeps,
  { claim, writer, scope, session, ctx, isAwake = false }: TurnToRun,
): Promise<TurnEnd | Outcome | null> {
  if (claim.how === "woken") return null;
  const { run } = claim;
  const held = { runId: run.runId, fence: run.fence };
  const place = { scope, session, ctx };
  const text = await deps.runs.partial(run.runId);
  if (text !== null) {
    await writer.note({ type: "custom", customType: "skein.partial", data: { runId: run.runId, text } });
    await deps.runs.keepPartial(held, null);
  }
  await takeSteeredBefore(deps, place, run);
  const tail = await tailOf(deps, place);
  const action = recoveryOf(tail, { wasWoken: isAwake, mostAttempts: deps.settings.maxRetries + 1 });
  // One that was only given back had not begun.
  const isTaken = run.lost > 0 || action !== "run_turn";
  if (isTaken)
    deps.emit({
      type: "run.recovered",
      at: deps.clock.now(),
      userId: session.userId,
      sessionKey: session.key,
      sessionId: session.sessionId,
      runId: run.runId,
      attempt: run.lost + 1,
      action,
    });
  switch (action) {
    case "run_turn":
    case "finish_calls":
    case "ask_model":
    case "retry":
      return null;
    case "sleep":
      return { kind: "yielded", entryId: tail.at(-1)?.id ?? "", sleep: {} };
    case "close":
      return closed(deps, writer, run, lastAnswer(tail));
    case "close_error":
      return {
        state: "error",
        code: "model_failed",
        error: lastAnswer(tail).error,
        entryId: lastAnswer(tail).entryId,
      };
    case "close_aborted":
      return {
        state: "aborted",
        code: "aborted",
        error: "The run was aborted.",
        entryId: lastAnswer(tail).entryId,
      };
  }
}

/** An answer that was to fit a schema is read again; where it does not fit, the model is told so. */
async function closed(
  { readOutput }: RunningDeps,
  writer: RunWriter,
  { options }: Run,
  { reply, entryId }: { readonly reply: string; readonly entryId: string },
): Promise<TurnEnd | null> {
  const end = { kind: "answered", reply, entryId } as const;
  if (options.outputSchema === undefined) return end;
  const read = await readOutput(reply, options.outputSchema);
  if ("output" in read) return { ...end, output: read.output };
  await writer.say(read.correction);
  return null;
}

/** Input whose entry stands in the session already was steered in by the lost owner. */
async function takeSteeredBefore(
  { runs, store }: RunningDeps,
  { scope, session }: RunPlace,
  { runId, fence }: Run,
): Promise<void> {
  const held = { runId, fence };
  for (const each of await runs.steerable(held)) {
    const there = await store.sessions.entry(scope, session.sessionId, each.entryId);
    if (there !== null) await runs.steered(held, each.runId);
  }
}

/** The run's own system prompt, else the agent's; what is added stands behind it. */
function systemOf({ options }: Run, agent: AgentProfile): string | null {
  const parts = [options.system ?? agent.system, options.extraSystemPrompt];
  const text = parts.filter((part) => part !== null && part !== undefined && part.trim() !== "").join("\n\n");
  return text === "" ? null : text;
}

/** What hooks make of the system prompt, and put before the prompt. */
async function promptBuild(
  { hooks, store }: RunningDeps,
  { claim, scope, session, ctx }: TurnToRun,
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
