import type { TurnEnd } from "../agents/contract.ts";
import type { ContextMessage } from "../core/context.ts";
import { isDiskFault, isOutOfDescriptors, SkeinError } from "../core/errors.ts";
import type { Claim, OutboxRequest, Outcome, Run } from "../runs/contract.ts";
import { retryableCodes, retryHint } from "../runs/states.ts";
import { isFenced, RunDeferred, RunStopped } from "../runs/worker.ts";
import type { SessionRecord } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { App } from "./app.ts";
import { resetIfDue } from "./reset.ts";
import { bringInput, prependedEntryId } from "./run-input.ts";
import { outcomeOf } from "./run-outcome.ts";
import type { RunPlace } from "./run-place.ts";
import { agentFor, runPlace, withWorkingDirectory } from "./run-place.ts";
import { lastWords, RunWriter, tailOf } from "./run-writer.ts";
import type { TurnToRun } from "./turn.ts";
import { beginTurn, runTurn } from "./turn.ts";
import { withState } from "./with-state.ts";

/**
 * One claimed run, from the open session to its end: claimed → open → input → state loaded → turn → state saved →
 * closed, with what goes out. It says itself how it ended; it throws only where something of ours is broken.
 */
export async function executeRun(app: App, claim: Claim, signal: AbortSignal): Promise<void> {
  const { run, held } = claim;
  const found = await sessionOf(app, run);
  if (found === null) {
    await app.runs.end(held, gone(run));
    return;
  }
  let ending = new Ending(app, runPlace(app, found, run), claim);
  try {
    const session = await withWorkingDirectory(app, found);
    const fence = () => app.runs.isHeld(held);
    const fresh = await resetIfDue(app, runPlace(app, session, run), claim, fence);
    const current = fresh === null ? session : await withWorkingDirectory(app, fresh);
    const place = runPlace(app, current, run);
    const begun = fresh === null ? claim : { ...claim, leafId: fresh.leafId };
    ending = new Ending(app, place, begun);
    const writer = await RunWriter.begin(app, place, begun);
    await (run.isSilent ? ending.closeWritten(writer) : ending.closeTurn(writer, signal));
  } catch (error) {
    await ending.closeFailed(error);
  }
}

class Ending {
  readonly #app: App;
  readonly #place: RunPlace;
  readonly #claim: Claim;
  readonly #beganAt: number;
  #writer: RunWriter | null = null;
  /** In `turn` the model may have been asked for what is not written: that is not repeated for as long as a disk is full. */
  #phase: "input" | "turn" | "answered" = "input";

  constructor(app: App, place: RunPlace, claim: Claim) {
    this.#app = app;
    this.#place = place;
    this.#claim = claim;
    this.#beganAt = app.clock.now();
  }

  /** A note, or a delivery beyond the budget: it stands in the session, and no model is asked. */
  async closeWritten(writer: RunWriter): Promise<void> {
    const { run } = this.#claim;
    const { refused } = await writer.say(run.message, run.entryId);
    await this.#app.runs.written(this.#claim.held);
    const state = refused === null ? "ok" : "error";
    const why = refused === null ? {} : { code: "refused", error: refused };
    await this.#end({ state, ...why, entryId: run.entryId });
  }

  async closeTurn(writer: RunWriter, signal: AbortSignal): Promise<void> {
    this.#writer = writer;
    const agent = agentFor(this.#app, this.#place.session);
    const begun = await beginTurn(this.#app, { ...this.#place, agent, claim: this.#claim, writer });
    if ("state" in begun) return this.#end(begun);
    this.#phase = "turn";
    const turn = { ...this.#place, begun, claim: this.#claim, writer, signal };
    // Where there is nothing to wait for the same turn goes on, and nothing of its beginning happens twice.
    for (let isAwake = false, goesOn = true; goesOn; isAwake = true)
      goesOn = await this.#closePass({ ...turn, isAwake });
  }

  /** The turn as far as it goes; `true`: it wanted to sleep, and there is nothing to wait for. */
  async #closePass(turn: Omit<TurnToRun, "state">): Promise<boolean> {
    const { store, report } = this.#app;
    const { scope, session } = this.#place;
    const { writer, begun } = turn;
    let ended: TurnEnd | Outcome | undefined;
    const { runId } = this.#claim.run;
    // A process that has lost the run must not overwrite the state of the one that has it now.
    const saving = { done: `The run ${runId} ended`, beforeSave: () => writer.check() };
    const work = async (state: TurnToRun["state"]) => {
      ended = await runTurn(this.#app, { ...turn, state });
    };
    try {
      await withState(store.state, scope, session.sessionId, begun.agent.state(), work, saving);
    } catch (error) {
      // What the run came to stands; that its state could not be saved besides is told, unless it is not ours any more.
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
      const outbox = this.#app.outgoing.of(this.#place.session, run, reply);
      const also = output === undefined ? {} : { output };
      await this.#end({ state: "ok", reply, entryId, ...also }, outbox);
      return false;
    }
    const { config, clock, runs } = this.#app;
    const wakeAt = clock.now() + config.yield.timeoutMinutes * 60_000;
    const slept = await runs.sleep(this.#claim.held, { ...ended.sleep, wakeAt });
    return slept === "nothing_to_wait_for";
  }

  async closeFailed(error: unknown): Promise<void> {
    // It waits for a file descriptor: the worker puts it back into the queue.
    if (isOutOfDescriptors(error)) throw error;
    const { runs, report } = this.#app;
    const outcome = outcomeOf(error, this.#claim.run, this.#app.redactor);
    if (outcome === null) {
      if (error instanceof RunStopped && error.why === "closing") await runs.release(this.#claim.held);
      else if (isFenced(error) && runs.isHeld(this.#claim.held)) await runs.lose(this.#claim.held);
      return;
    }
    if (this.#phase !== "turn" && isDiskFault(error)) throw new RunDeferred(error);
    if (outcome.code === "internal") report(error);
    try {
      await this.#keepInput();
      await this.#writer?.closeOpenCalls();
    } catch (closing) {
      if (isFenced(closing)) return;
      if (this.#phase !== "turn" && isDiskFault(closing)) throw new RunDeferred(closing);
      report(closing);
    }
    await this.#end({ ...this.#retryable(outcome, error), ...(await this.#saidSoFar()) });
  }

  /** A turn that the disk stopped can be continued with `runs retry`: the model was asked, and nothing is asked twice by itself. */
  #retryable(outcome: Outcome, error: unknown): Outcome {
    const code = isDiskFault(error) ? "write_failed" : outcome.code;
    if (code === undefined || !retryableCodes.includes(code)) return outcome;
    return { ...outcome, code, error: `${outcome.error ?? ""} ${retryHint(this.#claim.run.runId)}`.trim() };
  }

  /** What the turn had said before it could not go on: whoever asked is told that too. */
  async #saidSoFar(): Promise<Pick<Outcome, "reply">> {
    if (this.#phase === "input") return {};
    try {
      const reply = lastWords(await tailOf(this.#app, this.#place));
      return reply.trim() === "" ? {} : { reply };
    } catch (error) {
      // A session that is gone has said nothing any more.
      if (!(error instanceof SkeinError) || error.code !== "not_found") this.#app.report(error);
      return {};
    }
  }

  /** Whatever went wrong before it was written: what was accepted stands in the session. */
  async #keepInput(): Promise<void> {
    const { run, how } = this.#claim;
    if (how === "woken" || this.#writer === null) return;
    await bringInput(this.#app, this.#place, this.#writer, run, { seesImages: false, prepend: null });
  }

  async #end(outcome: Outcome, outbox: readonly OutboxRequest[] = []): Promise<void> {
    const { runs, hooks, clock, report } = this.#app;
    const target = outbox.at(-1)?.target;
    if (target !== undefined) await this.#keepLastTarget(target).catch(report);
    // Read before the end: the next run of the session may begin right after it.
    const messages = hooks.has("agent_end") ? await this.#messages() : [];
    try {
      await runs.end(this.#claim.held, outcome, { outbox });
    } catch (error) {
      if (!isFenced(error)) throw error;
      return;
    }
    const told = {
      outcome: outcome.state,
      error: outcome.error ?? null,
      messages,
      durationMs: clock.now() - this.#beganAt,
      ctx: this.#place.ctx,
    };
    await hooks.notify("agent_end", told).catch(report);
  }

  /** Where the reply goes, for lists; a session that has a delivery context shows that. */
  async #keepLastTarget({ channel, to, accountId }: OutboxRequest["target"]): Promise<void> {
    const { scope, session } = this.#place;
    const { meta, sessionId } = session;
    const last = { lastChannel: channel, lastTo: to ?? null, lastAccountId: accountId ?? null };
    const isKept = Object.entries(last).every(([field, value]) => (meta[field] ?? null) === value);
    if (isKept || meta.delivery !== undefined) return;
    await this.#app.store.sessions.patch(scope, sessionId, last);
  }

  /** From the input of the run on; after a compaction in the run, what the compaction kept of it. */
  async #messages(): Promise<readonly ContextMessage[]> {
    const { scope, session } = this.#place;
    const { entryId } = this.#claim.run;
    const { store, report } = this.#app;
    const context = await store.sessions.context(scope, session.sessionId).catch((error: unknown) => {
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
  return { state: "error", code: "not_found", error: `The session ${session.key} is gone.` };
}
