import type { TurnEnd } from "../../agents/contract.ts";
import type { Claim, HeldRun, Outcome, Run } from "../../runs/contract.ts";
import { recoveryOf } from "../../runs/recovery.ts";
import type { StateModule } from "../with-state.ts";
import type { BegunTurn } from "./begin-turn.ts";
import type { RunningDeps, RunPlace } from "./contract.ts";
import { lastAnswer } from "./last-answer.ts";
import type { RunWriter } from "./run-writer.ts";
import { tailOf } from "./run-writer.ts";
import { activeTools, turnPorts } from "./turn-ports.ts";
import { TurnRequests } from "./turn-request.ts";
import { yieldedFor } from "./yielded.ts";

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
export async function runTurn(deps: RunningDeps, turn: TurnToRun): Promise<TurnEnd | Outcome> {
  const { scope, session, claim, writer, signal, state, begun, isAwake } = turn;
  const { run } = claim;
  const closed = claim.how === "new" || isAwake ? null : await recovered(deps, turn);
  if (closed !== null) return closed;
  signal.throwIfAborted();
  const tools = await deps.tools(begun.agent, session, run);
  const { model, system, agent } = begun;
  const asked = {
    model,
    system,
    get tools() {
      return activeTools(tools, state, agent);
    },
  };
  const requests = new TurnRequests(deps, turn, asked);
  const parts = { place: turn, ...begun, claim, writer, signal, asked, state, requests };
  const ports = await turnPorts(deps, parts);
  if (session.meta.systemSent !== true)
    await deps.store.sessions.patch(scope, session.sessionId, { systemSent: true });
  deps.turns.set(session.uid, { plan: ports, requests });
  try {
    return await deps.runtime.run(ports);
  } finally {
    deps.turns.delete(session.uid);
  }
}

/** What a lost owner left: text that it had streamed, and a branch that says how to go on. `null`: the turn goes on. */
async function recovered(
  deps: RunningDeps,
  { claim, begun, writer, scope, session, ctx }: TurnToRun,
): Promise<TurnEnd | Outcome | null> {
  if (claim.how === "woken") return null;
  if (begun.agent.runtime === "acp") await takeBackQuestions(deps, claim.run);
  const { run, held } = claim;
  const place = { scope, session, ctx };
  const text = await deps.runs.partial(run.runId);
  if (text !== null) {
    await writer.note({ type: "custom", customType: "skein.partial", data: { runId: run.runId, text } });
    await deps.runs.keepPartial(held, null);
  }
  await takeSteeredBefore(deps, place, held);
  const tail = await tailOf(deps, place);
  const mostAttempts = deps.settings.maxRetries + 1;
  const action = recoveryOf(tail, { wasWoken: false, mostAttempts, startedAt: claim.begunAt });
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
      return { kind: "yielded", entryId: tail.at(-1)?.id ?? "", sleep: yieldedFor(tail) };
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

/** An agent whose process is gone waits for no answer; it asks anew where it still wants to know. */
async function takeBackQuestions({ runs }: RunningDeps, { runId }: Run): Promise<void> {
  for (const { approvalId } of await runs.approvals({ runId, open: true }))
    await runs.resolveApproval(approvalId, "expired", null);
}

/** Input whose entry stands in the session already was steered in by the lost owner. */
async function takeSteeredBefore(
  { runs, store }: RunningDeps,
  { scope, session }: RunPlace,
  held: HeldRun,
): Promise<void> {
  for (const each of await runs.steerable(held)) {
    const there = await store.sessions.entry(scope, session.sessionId, each.entryId);
    if (there !== null) await runs.steered(held, each.runId);
  }
}
