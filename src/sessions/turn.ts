import type { Tool, TurnEnd, TurnModel } from "../agents/contract.ts";
import { SkeinError } from "../core/errors.ts";
import type { Claim, HeldRun, Outcome, Run, RunOptions } from "../runs/contract.ts";
import { recoveryOf } from "../runs/recovery.ts";
import type { SessionMeta, SessionRecord } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { TranscriptMessage } from "../transcript/contract.ts";
import { isInserted } from "../transcript/derive.ts";
import type { AgentProfile } from "./agents.ts";
import type { App } from "./app.ts";
import { childSystemBlock } from "./child-rules.ts";
import { noteRetriedInput, promptOf, writeArrivals, writeInput } from "./run-input.ts";
import type { RunWriter } from "./run-writer.ts";
import { lastAnswer, tailOf } from "./run-writer.ts";
import { contextOfSession } from "./runtime-context.ts";
import { leaveTornCopies } from "./truncate-results.ts";
import { activeTools, turnPorts, yieldedFor } from "./turn-ports.ts";
import { TurnRequests } from "./turn-request.ts";
import type { StateModule } from "./with-state.ts";

interface TurnToBegin {
  readonly session: SessionRecord;
  readonly agent: AgentProfile | null;
  readonly claim: Claim;
  readonly writer: RunWriter;
}

/** Decided before the input is written. A process that continues the turn makes the same decision. */
interface BegunTurn extends TurnPlan {
  readonly agent: AgentProfile;
}

/**
 * Writes the input to the session before anything slow is loaded or called. Returns an outcome if the input was
 * rejected.
 */
export async function beginTurn(app: App, turn: TurnToBegin): Promise<BegunTurn | Outcome> {
  const { session, claim, writer } = turn;
  const { run } = claim;
  const { key, sessionId, leafId } = session;
  const ctx = contextOfSession(app.store, session, run);
  await leaveTornCopies(app.store.sessions, scopeOfSession(session), sessionId, { fence: writer.fence });
  await app.hooks.notify("session_start", { key, sessionId, isNew: leafId === null, ctx });
  const agent = requireAgent(turn);
  const plan = await planTurn(app, session, agent, run.options);
  const { model, thinkingLevel } = plan;
  const { system, prepend } = await askPromptHooks(app, turn, plan);
  const refused = await writeTurnInput(app, turn, model, prepend);
  if (refused !== null) return { state: "error", code: "refused", error: refused };
  return { agent, model, system, thinkingLevel };
}

function requireAgent({ agent, session }: TurnToBegin): AgentProfile {
  if (agent !== null) return agent;
  throw new SkeinError("not_found", {
    what: "Agent",
    name: session.agentId,
    advice: "Define it with defineAgent or add it under agents in the configuration",
  });
}

/** Writes the input. If the input is rejected, returns the reason. */
async function writeTurnInput(
  app: App,
  { claim, writer, session }: TurnToBegin,
  model: TurnModel,
  prepend: string | null,
): Promise<string | null> {
  const { run, held, how } = claim;
  const seesImages = model.policy.images !== null;
  const { refused, wasThere } = await writeInput(app, session, writer, run, { seesImages, prepend });
  if (claim.isOvertaken && wasThere) await noteRetriedInput(writer, run);
  // Must come before `markWritten`. Until then, a process that takes over also writes the messages that woke the run.
  if (how === "woken" || claim.arrivals.length > 0) await writeArrivals(app, session, writer, claim);
  if (refused === null) await app.runs.markWritten(held);
  return refused;
}

/** Returns the history for hooks, prepared for the model but without inserted filler messages. */
export async function cleanedHistory(
  app: Pick<App, "store" | "config" | "clock">,
  session: SessionRecord,
  model: TurnModel,
): Promise<readonly TranscriptMessage[]> {
  const requests = new TurnRequests(app, session, { model, system: null, tools: null });
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
  const { session, claim } = turn;
  const messages = await cleanedHistory(app, session, model);
  const ctx = contextOfSession(app.store, session, claim.run);
  const started = await hooks.ask("before_agent_start", { prompt, messages, ctx });
  const built = await hooks.ask("before_prompt_build", { system, prompt, messages, ctx });
  const prepend = [started.prependContext, built.prependContext].filter((text) => text !== null).join("\n\n");
  return { system: built.system, prepend: prepend === "" ? null : prepend };
}

export interface TurnToRun {
  readonly session: SessionRecord;
  readonly begun: BegunTurn;
  readonly claim: Claim;
  readonly writer: RunWriter;
  readonly signal: AbortSignal;
  /** Loaded from the session, and saved after the turn. */
  readonly state: readonly StateModule[];
  /** `true` if the turn yielded with nothing left to wait for. In that case, it continues without recovery. */
  readonly isAwake: boolean;
}

/** Runs a claimed run's turn, starting from the session's current state. */
export async function runTurn(app: App, turn: TurnToRun): Promise<TurnEnd | Outcome> {
  const { session, claim, writer, signal, state, begun, isAwake } = turn;
  const { run } = claim;
  const closed = claim.how === "new" || isAwake ? null : await recoverTurn(app, turn);
  if (closed !== null) return closed;
  signal.throwIfAborted();
  const tools = await toolsFor(app, begun.agent, session, run);
  const { model, system, agent } = begun;
  const settings = {
    model,
    system,
    get tools() {
      return activeTools(tools, state, agent);
    },
  };
  const requests = new TurnRequests(app, session, settings);
  const ports = await turnPorts(app, { session, ...begun, claim, writer, signal, settings, state, requests });
  if (session.meta.systemSent !== true)
    await app.store.sessions.patch(scopeOfSession(session), session.sessionId, { systemSent: true });
  app.turns.set(session.uid, { plan: ports, requests, retryAt: null });
  try {
    return await app.runtime.run(ports);
  } finally {
    app.turns.delete(session.uid);
  }
}

/** Returns the tools for the turn. An ACP agent gets none, because it has its own tools. */
async function toolsFor(
  { agents, tools }: Pick<App, "agents" | "tools">,
  { id, runtime }: AgentProfile,
  session: SessionRecord,
  run: Run,
): Promise<readonly Tool[]> {
  return runtime === "acp" ? [] : tools.of(agents.describe(id), run, session);
}

/**
 * Continues after an owner was lost. Stores the streamed text and determines from the branch how to continue. Returns
 * `null` if the turn should run.
 */
async function recoverTurn(
  app: App,
  { claim, begun, writer, session }: TurnToRun,
): Promise<TurnEnd | Outcome | null> {
  if (claim.how === "woken") return null;
  if (begun.agent.runtime === "acp") await expireApprovals(app, claim.run);
  const { run, held } = claim;
  const text = await app.runs.partial(run.runId);
  if (text !== null) {
    await writer.note({ type: "custom", customType: "skein.partial", data: { runId: run.runId, text } });
    await app.runs.savePartial(held, null);
  }
  await confirmSteered(app, session, held);
  const tail = await tailOf(app, session);
  const mostAttempts = app.config.retries.max + 1;
  const action = recoveryOf(tail, { wasWoken: false, mostAttempts, startedAt: claim.begunAt });
  // A run that was released before it started does not need recovery.
  const wasRecovered = run.lost > 0 || action !== "run_turn";
  if (wasRecovered)
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
      return closeAnswered(writer, run, lastAnswer(tail));
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

/** Parses an answer that must match a schema. The model is asked to correct an answer that does not match. */
async function closeAnswered(
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

/**
 * Expires a run's pending approvals, because the agent process that was waiting for them has exited. The next process
 * requests them again if necessary.
 */
async function expireApprovals({ runs }: App, { runId }: Run): Promise<void> {
  for (const { approvalId } of await runs.approvals({ runId, open: true }))
    await runs.resolveApproval(approvalId, "expired", null);
}

/** Confirms input that has an entry, because the lost owner already wrote it. */
async function confirmSteered({ runs, store }: App, session: SessionRecord, held: HeldRun): Promise<void> {
  const scope = scopeOfSession(session);
  for (const each of await runs.steerable(held)) {
    const there = await store.sessions.entry(scope, session.sessionId, each.entryId);
    if (there !== null) await runs.mergeInput(held, each.runId);
  }
}

/** A turn's settings, from the agent, session and run. */
interface TurnPlan {
  readonly model: TurnModel;
  /** The prompt before hooks change it. */
  readonly system: string | null;
  readonly thinkingLevel: string;
}

/** Determines a turn's model, system prompt and thinking level. */
export async function planTurn(
  app: Pick<App, "models" | "store">,
  session: SessionRecord,
  agent: AgentProfile,
  options: RunOptions,
): Promise<TurnPlan> {
  const { meta } = session;
  return {
    model: app.models.turnModel(chooseModel(options, meta, agent)),
    system: joinSystem(options, agent, meta),
    thinkingLevel: await chooseThinkingLevel(app, session, agent, options),
  };
}

/**
 * Chooses the model. An ACP agent's model is set when the agent is spawned, and a run cannot choose a different one.
 */
function chooseModel(options: RunOptions, meta: SessionMeta, agent: AgentProfile): string {
  if (agent.runtime !== "acp") return options.model ?? meta.model ?? agent.model;
  const model = options.model ?? meta.model;
  const thinking = options.thinking ?? meta.thinkingLevel;
  if (model === undefined && thinking === undefined) return agent.model;
  const asked = model === undefined ? `thinking ${thinking}` : `model ${model}`;
  const problem = `its model and thinking level are set once, when it is spawned, but this run requests ${asked}`;
  const advice = "Remove that setting from the run and the session, or spawn the agent again with it";
  throw new SkeinError("acp_unsupported", { agent: agent.id, problem, advice });
}

/**
 * Assembles the system prompt. The run's system prompt replaces the agent's and is followed by the sub-agent block and
 * `extraSystemPrompt`. An ACP agent gets no sub-agent block, because it does not have the tools that the block
 * describes.
 */
function joinSystem(options: RunOptions, agent: AgentProfile, meta: SessionMeta): string | null {
  const child = agent.runtime === "acp" ? null : childSystemBlock(meta);
  const parts = [options.system ?? agent.system, child, options.extraSystemPrompt];
  const text = parts.filter((part) => part !== null && part !== undefined && part.trim() !== "").join("\n\n");
  return text === "" ? null : text;
}

/**
 * Returns the thinking level that the run sets, otherwise the one in the session's metadata, otherwise the one in the
 * session's entries, otherwise the agent's.
 */
async function chooseThinkingLevel(
  { store }: Pick<App, "store">,
  session: SessionRecord,
  agent: AgentProfile,
  options: RunOptions,
): Promise<string> {
  const given = options.thinking ?? session.meta.thinkingLevel;
  if (given !== undefined) return given;
  const scope = scopeOfSession(session);
  const context = await store.sessions.context(scope, session.sessionId, { byteBudget: 1 });
  const written = context?.thinkingLevel ?? "off";
  // A context also reports "off" if no entry sets a level.
  return written === "off" ? (agent.thinking ?? "off") : written;
}
