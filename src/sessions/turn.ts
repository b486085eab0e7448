import type { Tool, TurnEnd, TurnModel } from "../agents/contract.ts";
import { SkeinError } from "../core/errors.ts";
import type { Claim, HeldRun, Outcome, Run, RunOptions } from "../runs/contract.ts";
import { recoveryOf } from "../runs/recovery.ts";
import type { SessionMeta, SessionRecord } from "../store/contract.ts";
import type { TranscriptMessage } from "../transcript/contract.ts";
import { isInserted } from "../transcript/derive.ts";
import type { AgentProfile } from "./agents.ts";
import type { App } from "./app.ts";
import { childSystemBlock } from "./child-rules.ts";
import { bringArrivals, bringInput, pointBack, promptOf } from "./run-input.ts";
import type { RunPlace } from "./run-place.ts";
import type { RunWriter } from "./run-writer.ts";
import { lastAnswer, tailOf } from "./run-writer.ts";
import { leaveTornCopies } from "./truncate-results.ts";
import { activeTools, turnPorts, yieldedFor } from "./turn-ports.ts";
import { TurnRequests } from "./turn-request.ts";
import type { StateModule } from "./with-state.ts";

export interface TurnToBegin extends RunPlace {
  readonly agent: AgentProfile | null;
  readonly claim: Claim;
  readonly writer: RunWriter;
}

/** What was decided before the input. A process that continues the turn reuses it. */
export interface BegunTurn extends TurnPlan {
  readonly agent: AgentProfile;
}

/** Brings the input into the session, before anything is loaded or asked that may take its time. An outcome: it was refused. */
export async function beginTurn(app: App, turn: TurnToBegin): Promise<BegunTurn | Outcome> {
  const { scope, session, claim, writer, ctx } = turn;
  const { run } = claim;
  await leaveTornCopies(app.store.sessions, scope, session.sessionId, { fence: writer.fence });
  const { key, sessionId, leafId } = session;
  await app.hooks.notify("session_start", { key, sessionId, isNew: leafId === null, ctx });
  const agent = required(turn);
  const plan = await planTurn(app, turn, agent, run.options);
  const { model, thinkingLevel } = plan;
  const { system, prepend } = await askPromptHooks(app, turn, plan);
  const refused = await bring(app, turn, model, prepend);
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
  app: App,
  { claim, writer, ...place }: TurnToBegin,
  model: TurnModel,
  prepend: string | null,
): Promise<string | null> {
  const { run, held, how } = claim;
  const seesImages = model.policy.images !== null;
  const { refused, wasThere } = await bringInput(app, place, writer, run, { seesImages, prepend });
  if (claim.isOvertaken && wasThere) await pointBack(writer, run);
  // The reason for waking is written first: until then, the next process wakes for it again.
  if (how === "woken" || claim.arrivals.length > 0) await bringArrivals(app, place, writer, claim);
  if (refused === null) await app.runs.written(held);
  return refused;
}

/** The history as hooks see it: cleaned for the model, without what only fills a request up. */
export async function cleanedHistory(
  app: Pick<App, "store" | "config" | "clock">,
  place: RunPlace,
  model: TurnModel,
): Promise<readonly TranscriptMessage[]> {
  const requests = new TurnRequests(app, place, { model, system: null, tools: null });
  const { messages } = await requests.preview();
  return messages.filter((message) => !isInserted(message));
}

/** Lets hooks change the system prompt and add context before the prompt. */
async function askPromptHooks(
  app: App,
  turn: TurnToBegin,
  { model, system }: Pick<TurnPlan, "model" | "system">,
): Promise<{ readonly system: string | null; readonly prepend: string | null }> {
  const { hooks } = app;
  if (!hooks.has("before_agent_start") && !hooks.has("before_prompt_build")) return { system, prepend: null };
  const prompt = promptOf(turn.claim.run);
  const messages = await cleanedHistory(app, turn, model);
  const { ctx } = turn;
  const started = await hooks.ask("before_agent_start", { prompt, messages, ctx });
  const built = await hooks.ask("before_prompt_build", { system, prompt, messages, ctx });
  const prepend = [started.prependContext, built.prependContext].filter((text) => text !== null).join("\n\n");
  return { system: built.system, prepend: prepend === "" ? null : prepend };
}

export interface TurnToRun extends RunPlace {
  readonly begun: BegunTurn;
  readonly claim: Claim;
  readonly writer: RunWriter;
  readonly signal: AbortSignal;
  /** Loaded from the session, and saved after the turn. */
  readonly state: readonly StateModule[];
  /** It wanted to sleep, and there was nothing to wait for. */
  readonly isAwake: boolean;
}

/** The turn of a claimed run whose input is there, from wherever the session stands. */
export async function runTurn(app: App, turn: TurnToRun): Promise<TurnEnd | Outcome> {
  const { scope, session, claim, writer, signal, state, begun, isAwake } = turn;
  const { run } = claim;
  const closed = claim.how === "new" || isAwake ? null : await recovered(app, turn);
  if (closed !== null) return closed;
  signal.throwIfAborted();
  const tools = await toolsFor(app, begun.agent, session, run);
  const { model, system, agent } = begun;
  const asked = {
    model,
    system,
    get tools() {
      return activeTools(tools, state, agent);
    },
  };
  const requests = new TurnRequests(app, turn, asked);
  const parts = { place: turn, ...begun, claim, writer, signal, asked, state, requests };
  const ports = await turnPorts(app, parts);
  if (session.meta.systemSent !== true)
    await app.store.sessions.patch(scope, session.sessionId, { systemSent: true });
  app.turns.set(session.uid, { plan: ports, requests });
  try {
    return await app.runtime.run(ports);
  } finally {
    app.turns.delete(session.uid);
  }
}

/** An ACP agent brings tools of its own. */
async function toolsFor(
  { agents, tools }: Pick<App, "agents" | "tools">,
  { id, runtime }: AgentProfile,
  session: SessionRecord,
  run: Run,
): Promise<readonly Tool[]> {
  return runtime === "acp" ? [] : tools.of(agents.describe(id), run, session);
}

/** What a lost owner left: text that it had streamed, and a branch that says how to go on. `null`: the turn goes on. */
async function recovered(
  app: App,
  { claim, begun, writer, scope, session, ctx }: TurnToRun,
): Promise<TurnEnd | Outcome | null> {
  if (claim.how === "woken") return null;
  if (begun.agent.runtime === "acp") await takeBackQuestions(app, claim.run);
  const { run, held } = claim;
  const place = { scope, session, ctx };
  const text = await app.runs.partial(run.runId);
  if (text !== null) {
    await writer.note({ type: "custom", customType: "skein.partial", data: { runId: run.runId, text } });
    await app.runs.keepPartial(held, null);
  }
  await takeSteeredBefore(app, place, held);
  const tail = await tailOf(app, place);
  const mostAttempts = app.config.retries.max + 1;
  const action = recoveryOf(tail, { wasWoken: false, mostAttempts, startedAt: claim.begunAt });
  // One that was only given back had not begun.
  const isTaken = run.lost > 0 || action !== "run_turn";
  if (isTaken)
    app.bus.emit({
      type: "run.recovered",
      at: app.clock.now(),
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
      return { kind: "yielded", entryId: tail.at(-1)?.id ?? "", sleep: yieldedFor(tail) };
    case "close":
      return closed(writer, run, lastAnswer(tail));
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

/** Parses an answer that must fit a schema; an answer that does not fit is returned to the model for correction. */
async function closed(
  writer: RunWriter,
  { options }: Run,
  { reply, entryId }: { readonly reply: string; readonly entryId: string },
): Promise<TurnEnd | null> {
  const end = { kind: "answered", reply, entryId } as const;
  if (options.outputSchema === undefined) return end;
  const { correction, readOutput } = await import("../agents/loop/model-call.ts");
  const read = await readOutput(reply, options.outputSchema);
  if ("output" in read) return { ...end, output: read.output };
  await writer.say(correction(read.problem));
  return null;
}

/** An agent whose process has ended waits for no answer; it asks again if it still needs one. */
async function takeBackQuestions({ runs }: App, { runId }: Run): Promise<void> {
  for (const { approvalId } of await runs.approvals({ runId, open: true }))
    await runs.resolveApproval(approvalId, "expired", null);
}

/** Input whose entry stands in the session already was steered in by the lost owner. */
async function takeSteeredBefore(
  { runs, store }: App,
  { scope, session }: RunPlace,
  held: HeldRun,
): Promise<void> {
  for (const each of await runs.steerable(held)) {
    const there = await store.sessions.entry(scope, session.sessionId, each.entryId);
    if (there !== null) await runs.steered(held, each.runId);
  }
}

/** What agent, session and run settle before the first request. */
export interface TurnPlan {
  readonly model: TurnModel;
  /** Before hooks have changed it. */
  readonly system: string | null;
  readonly thinkingLevel: string;
}

/** Settles the model, the system prompt and the thinking level of a turn. */
export async function planTurn(
  app: Pick<App, "models" | "store">,
  place: Pick<RunPlace, "scope" | "session">,
  agent: AgentProfile,
  options: RunOptions,
): Promise<TurnPlan> {
  const { meta } = place.session;
  return {
    model: app.models.turnModel(chooseModel(options, meta, agent)),
    system: joinSystem(options, agent, meta),
    thinkingLevel: await chooseThinkingLevel(app, place, agent, options),
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
  { store }: Pick<App, "store">,
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
