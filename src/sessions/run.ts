import type { TurnEnd } from "../agents/contract.ts";
import type { ContextMessage } from "../core/context.ts";
import { isDatabaseFault, isDiskFault, isOutOfDescriptors, SkeinError } from "../core/errors.ts";
import type { Claim, OutboxRequest, Outcome, Run } from "../runs/contract.ts";
import { resumableCodes, retryHint } from "../runs/states.ts";
import { isFenced, RunDeferred, RunStopped } from "../runs/worker.ts";
import type { SessionRecord } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { App } from "./app.ts";
import { resetIfDue } from "./reset.ts";
import { prependedEntryId, writeInput } from "./run-input.ts";
import { outcomeOf } from "./run-outcome.ts";
import { agentFor, withWorkingDirectory } from "./run-session.ts";
import { lastWords, RunWriter, tailOf } from "./run-writer.ts";
import { contextOfSession } from "./runtime-context.ts";
import type { TurnToRun } from "./turn.ts";
import { beginTurn, runTurn } from "./turn.ts";
import { withState } from "./with-state.ts";

/**
 * Executes a claimed run: opens the session, writes the input, loads state, runs the turn, saves state, and ends the
 * run together with its outgoing messages. Every failure of the run becomes its outcome. Only internal errors are
 * thrown.
 */
export async function executeRun(app: App, claim: Claim, signal: AbortSignal): Promise<void> {
  const { run, held } = claim;
  const found = await sessionOf(app, run);
  if (found === null) {
    await app.runs.end(held, gone(run));
    return;
  }
  let execution = new RunExecution(app, found, claim);
  try {
    const session = await withWorkingDirectory(app, found);
    const fresh = await resetIfDue(app, session, claim);
    const current = fresh === null ? session : await withWorkingDirectory(app, fresh);
    const begun = fresh === null ? claim : { ...claim, leafId: fresh.leafId };
    execution = new RunExecution(app, current, begun);
    const writer = await RunWriter.begin(app, current, begun);
    await (run.isSilent ? execution.writeOnly(writer) : execution.runTurns(writer, signal));
  } catch (error) {
    await execution.fail(error);
  }
}

class RunExecution {
  readonly #app: App;
  readonly #session: SessionRecord;
  readonly #claim: Claim;
  readonly #beganAt: number;
  #writer: RunWriter | null = null;
  /**
   * During `turn`, the model might have produced an answer that has not been written yet. A full disk must not cause
   * the model to be called again.
   */
  #phase: "input" | "turn" | "answered" = "input";

  constructor(app: App, session: SessionRecord, claim: Claim) {
    this.#app = app;
    this.#session = session;
    this.#claim = claim;
    this.#beganAt = app.clock.now();
  }

  /** Writes a note, or a delivery that exceeds the budget, without calling a model. */
  async writeOnly(writer: RunWriter): Promise<void> {
    const { run } = this.#claim;
    const { refused } = await writer.say(run.message, run.entryId);
    await this.#app.runs.markWritten(this.#claim.held);
    const state = refused === null ? "ok" : "error";
    const why = refused === null ? {} : { code: "refused", error: refused };
    await this.#end({ state, ...why, entryId: run.entryId });
  }

  async runTurns(writer: RunWriter, signal: AbortSignal): Promise<void> {
    this.#writer = writer;
    const session = this.#session;
    const agent = agentFor(this.#app, session);
    const begun = await beginTurn(this.#app, { session, agent, claim: this.#claim, writer });
    if ("state" in begun) return this.#end(begun);
    this.#phase = "turn";
    const turn = { session, begun, claim: this.#claim, writer, signal };
    // If the turn yields with nothing left to wait for, it continues without repeating its beginning.
    for (let isAwake = false, goesOn = true; goesOn; isAwake = true)
      goesOn = await this.#runTurn({ ...turn, isAwake });
  }

  /** Runs the turn until it ends or yields. Returns `true` if it yielded with nothing left to wait for. */
  async #runTurn(turn: Omit<TurnToRun, "state">): Promise<boolean> {
    const { store, report } = this.#app;
    const { sessionId } = this.#session;
    const { writer, begun } = turn;
    let ended: TurnEnd | Outcome | undefined;
    const { runId } = this.#claim.run;
    // A process that has lost the run must not overwrite state saved by the run's current owner.
    const saving = { done: `The run ${runId} ended`, fence: writer.fence };
    const work = async (state: TurnToRun["state"]) => {
      ended = await runTurn(this.#app, { ...turn, state });
    };
    try {
      const scope = scopeOfSession(this.#session);
      await withState(store.state, scope, sessionId, begun.agent.state(), work, saving);
    } catch (error) {
      // The run's outcome takes precedence. A failure to save its state is only reported, unless another process now
      // owns the run.
      const [why, ...besides] = error instanceof AggregateError ? (error.errors as unknown[]) : [error];
      if (!isLost(why)) for (const each of besides) report(each);
      if (ended === undefined) throw why;
      if (!isLost(why)) report(why);
    }
    return ended === undefined ? false : this.#settle(ended);
  }

  async #settle(ended: TurnEnd | Outcome): Promise<boolean> {
    if ("state" in ended) {
      await this.#end(ended);
      return false;
    }
    if (ended.kind === "answered") {
      this.#phase = "answered";
      const { reply, entryId, output } = ended;
      const { run } = this.#claim;
      const outbox = this.#app.outgoing.of(this.#session, run, reply);
      const also = output === undefined ? {} : { output };
      await this.#end({ state: "ok", reply, entryId, ...also }, outbox);
      return false;
    }
    const { config, clock, runs } = this.#app;
    const wakeAt = clock.now() + config.yield.timeoutMinutes * 60_000;
    const slept = await runs.sleep(this.#claim.held, { ...ended.sleep, wakeAt });
    return slept === "nothing_to_wait_for";
  }

  async fail(error: unknown): Promise<void> {
    // The worker requeues the run until a file descriptor becomes available.
    if (isOutOfDescriptors(error)) throw error;
    const { runs, report } = this.#app;
    const outcome = outcomeOf(error, this.#claim.run, this.#app.redactor);
    if (outcome === null) {
      if (error instanceof RunStopped && error.why === "closing") await runs.release(this.#claim.held);
      else if (isFenced(error) && (await runs.isHeld(this.#claim.held))) await runs.lose(this.#claim.held);
      return;
    }
    if (this.#isDeferredBy(error)) throw new RunDeferred(error);
    if (outcome.code === "internal") report(error);
    try {
      await this.#writeAcceptedInput();
      await this.#writer?.closeOpenCalls();
    } catch (closing) {
      if (this.#isDeferredBy(closing)) throw new RunDeferred(closing);
      // If this process still holds the run, another writer moved the branch. The run ends anyway.
      if (!isFenced(closing)) report(closing);
    }
    await this.#end({ ...this.#retryable(outcome, error), ...(await this.#saidSoFar()) });
  }

  /**
   * Whether to put the run back in the queue. After a disk fault during the turn, the run ends instead, because the
   * model would be called again. After a fault of a shared database, it is requeued at any point, as in a takeover.
   */
  #isDeferredBy(error: unknown): boolean {
    return isDatabaseFault(error) || (this.#phase !== "turn" && isDiskFault(error));
  }

  /**
   * Marks a turn that failed because of the disk so that `runs retry` can retry it. It is not retried automatically,
   * because the model would answer twice.
   */
  #retryable(outcome: Outcome, error: unknown): Outcome {
    const code = isDiskFault(error) ? "write_failed" : outcome.code;
    if (code === undefined || !resumableCodes.includes(code)) return outcome;
    return { ...outcome, code, error: `${outcome.error ?? ""} ${retryHint(this.#claim.run.runId)}`.trim() };
  }

  /** Returns the text that the turn wrote before it failed, for the outcome. */
  async #saidSoFar(): Promise<Pick<Outcome, "reply">> {
    if (this.#phase === "input") return {};
    try {
      const reply = lastWords(await tailOf(this.#app, this.#session));
      return reply.trim() === "" ? {} : { reply };
    } catch (error) {
      // The session has since been removed.
      if (!(error instanceof SkeinError) || error.code !== "not_found") this.#app.report(error);
      return {};
    }
  }

  /** Writes accepted input, which belongs to the session even if the run fails before writing it. */
  async #writeAcceptedInput(): Promise<void> {
    const { run, how } = this.#claim;
    if (how === "woken" || this.#writer === null) return;
    await writeInput(this.#app, this.#session, this.#writer, run, { seesImages: false, prepend: null });
  }

  async #end(result: Outcome, outbox: readonly OutboxRequest[] = []): Promise<void> {
    const { runs, hooks, clock, report } = this.#app;
    const target = outbox.at(-1)?.target;
    if (target !== undefined) await this.#keepLastTarget(target).catch(report);
    // Read before the run ends, because the session's next run can start immediately afterward.
    const messages = hooks.has("agent_end") ? await this.#messages() : [];
    let outcome: Outcome;
    try {
      outcome = await runs.end(this.#claim.held, result, { outbox });
    } catch (error) {
      if (!isFenced(error)) throw error;
      return;
    }
    const event = {
      // Not the turn's own result, because the run might have been aborted since.
      outcome: outcome.state,
      error: outcome.error ?? null,
      messages,
      durationMs: clock.now() - this.#beganAt,
      ctx: contextOfSession(this.#app.store, this.#session, this.#claim.run),
    };
    await hooks.notify("agent_end", event).catch(report);
  }

  /**
   * Records where the reply was delivered, for session lists. A session with a delivery context shows that context
   * instead.
   */
  async #keepLastTarget({ channel, to, accountId }: OutboxRequest["target"]): Promise<void> {
    const { meta, sessionId } = this.#session;
    const last = { lastChannel: channel, lastTo: to ?? null, lastAccountId: accountId ?? null };
    const isKept = Object.entries(last).every(([field, value]) => (meta[field] ?? null) === value);
    if (isKept || meta.delivery !== undefined) return;
    await this.#app.store.sessions.patch(scopeOfSession(this.#session), sessionId, last);
  }

  /**
   * Returns the messages starting with the run's input. If the session was compacted during the run, returns the
   * messages that were kept.
   */
  async #messages(): Promise<readonly ContextMessage[]> {
    const { sessionId } = this.#session;
    const scope = scopeOfSession(this.#session);
    const { entryId } = this.#claim.run;
    const { store, report } = this.#app;
    const context = await store.sessions.context(scope, sessionId).catch((error: unknown) => {
      report(error);
      return null;
    });
    if (context === null) return [];
    const { entryIds, messages } = context;
    const begin = entryIds.findIndex((id) => id === prependedEntryId(entryId) || id === entryId);
    return begin === -1 ? messages.filter(({ role }) => role !== "compactionSummary") : messages.slice(begin);
  }
}

function isLost(error: unknown): boolean {
  return isFenced(error) || (error instanceof RunStopped && error.why === "lost");
}

async function sessionOf(app: App, { session }: Run): Promise<SessionRecord | null> {
  return app.store.sessions.get(scopeOfSession(session), session.sessionId);
}

function gone({ session }: Run): Outcome {
  return { state: "error", code: "not_found", error: `The session ${session.key} no longer exists.` };
}
