import type { Entry } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import type { ToolCallBlock } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import type { AnswerDraft } from "../ai-sdk/from-response.ts";
import type { Runtime, Turn, TurnEnd } from "../contract.ts";
import type { AnsweredCalls } from "./answer-calls.ts";
import { answerCalls } from "./answer-calls.ts";
import { askModel } from "./ask-model.ts";
import { asKept, madeCalls } from "./kept-arguments.ts";
import { chargedUsage, isEmptyAnswer } from "./messages.ts";
import { correction, readOutput } from "./output.ts";
import { Repeats } from "./repeats.ts";
import type { LoopDeps } from "./waits.ts";
import { loopDeps } from "./waits.ts";

/** So often a model is told that its answer does not fit. */
const mostCorrections = 2;

/**
 * The runtime that asks a model, does what it calls for, and asks again, one step at a time: every message is written
 * before the next request, so that whoever takes a turn up goes on from what is written.
 */
export function createLoop(deps: Partial<LoopDeps> = {}): Runtime {
  const whole = loopDeps(deps);
  return { run: (turn) => new Loop(turn, whole).run() };
}

/** One turn under way. */
class Loop {
  readonly #turn: Turn;
  readonly #deps: LoopDeps;
  readonly #repeats = new Repeats();
  #wasEmpty = false;
  #corrections = 0;
  #lastEntryId = "";

  constructor(turn: Turn, deps: LoopDeps) {
    this.#turn = turn;
    this.#deps = deps;
  }

  async run(): Promise<TurnEnd> {
    const { limits } = this.#turn;
    const resumed = await this.#resume();
    if (resumed !== null) return resumed;
    for (let step = 1; step <= limits.maxSteps; step++) {
      const end = await this.#step(step);
      if (end !== null) return end;
    }
    throw new SkeinError("step_limit", { steps: limits.maxSteps });
  }

  /** Calls that a lost owner left open are answered first. */
  async #resume(): Promise<TurnEnd | null> {
    const { open } = this.#turn;
    if (open === null || open.calls.length === 0) return null;
    const origin = { entryId: open.entryId, isReplay: true };
    return this.#afterCalls(await answerCalls(this.#turn, open.calls, origin, this.#deps), open.entryId);
  }

  /** One request and all that comes of it; `null`: the turn goes on. */
  async #step(step: number): Promise<TurnEnd | null> {
    const turn = this.#turn;
    await turn.check();
    turn.signal.throwIfAborted();
    turn.emit({ type: "step", phase: "asked", step });
    const answer = await askModel(turn, this.#deps).catch((error: unknown) => {
      // After an abort nobody knows how it would have ended.
      if (error instanceof SkeinError) turn.emit({ type: "step", phase: "answered", step, code: error.code });
      throw error;
    });
    const usage = chargedUsage(answer, turn.model);
    turn.emit({ type: "step", phase: "answered", step, usage, finishReason: answer.stopReason });
    await turn.hooks.llmOutput(answer);
    if (isEmptyAnswer(answer) && !this.#wasEmpty) {
      // Nothing is written of it: an empty answer in the history invites another.
      this.#wasEmpty = true;
      await turn.charge(usage);
      return null;
    }
    // Counted before it is written: an answer that a crash loses was paid for, and one that is written is counted once.
    const counted = await turn.charge(usage).then(
      () => null,
      (error: unknown) => ({ error }),
    );
    const kept = asKept(answer, turn.tools);
    const { entry, hasOnlyInvalidCalls } = await turn.say(kept);
    if (counted !== null) throw counted.error;
    if (entry !== null) this.#lastEntryId = entry.id;
    if (hasOnlyInvalidCalls === true) return this.#afterInvalidCalls(answer);
    const calls = madeCalls(callsIn(entry), kept, answer);
    if (entry === null || calls.length === 0) return this.#close(answer, entry);
    const origin = { entryId: entry.id, isReplay: false };
    return this.#afterCalls(await answerCalls(turn, calls, origin, this.#deps), entry.id);
  }

  async #afterCalls({ answered, entryId, sleep }: AnsweredCalls, madeBy: string): Promise<TurnEnd | null> {
    this.#lastEntryId = entryId ?? madeBy;
    this.#wasEmpty = false;
    if (sleep !== null) return { kind: "yielded", entryId: this.#lastEntryId, sleep };
    if (this.#repeats.see(answered)) {
      throw repeatedCall(answered[0]?.call);
    }
    // Only here, between two steps. Input that arrives while the final answer streams is the next run.
    if (await this.#turn.takeInput()) this.#repeats.forget();
    return null;
  }

  /** The model was told which calls are invalid and why. The same ones again get the same note. */
  #afterInvalidCalls({ content }: AnswerDraft): null {
    const calls = content.filter((block) => block.type === "toolCall");
    if (this.#repeats.seeInvalid(calls)) throw repeatedCall(calls[0]);
    return null;
  }

  /** An answer without calls ends the turn, unless it does not fit the schema. */
  async #close(answer: AnswerDraft, entry: Entry | null): Promise<TurnEnd | null> {
    const { outputSchema } = this.#turn;
    // What was refused is not said to anybody.
    const reply = entry === null ? "" : textOf(answer.content);
    const end = { kind: "answered", reply, entryId: this.#lastEntryId } as const;
    if (outputSchema === null || entry === null) return end;
    const read = await readOutput(reply, outputSchema);
    if ("output" in read) return { ...end, output: read.output };
    if (this.#corrections === mostCorrections) {
      throw new SkeinError("invalid_output", { problem: read.problem });
    }
    this.#corrections++;
    await this.#turn.say(correction(read.problem));
    return null;
  }
}

function repeatedCall(call: ToolCallBlock | undefined): SkeinError {
  return new SkeinError("repeated_call", { tool: call?.name ?? "" });
}

/** As they were written: the guard takes out what nobody can answer. */
function callsIn(entry: Entry | null): ToolCallBlock[] {
  if (entry?.type !== "message" || entry.message.role !== "assistant") return [];
  return entry.message.content.filter((block) => block.type === "toolCall");
}
