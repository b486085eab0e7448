import { isDeepStrictEqual } from "node:util";
import type { Entry } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { canonicalJson } from "../../core/json.ts";
import type { ToolCallBlock } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import { shortHash } from "../../core/short-hash.ts";
import type { Runtime, Tool, Turn, TurnEnd } from "../contract.ts";
import type { AnswerDraft } from "../models/assistant-message.ts";
import { askModel, chargeAnswer, chargedUsage, isEmptyAnswer } from "./ask-model.ts";
import type { AnsweredCall, AnsweredCalls } from "./call-tool.ts";
import { answerCalls } from "./call-tool.ts";
import { correction, readOutput } from "./model-call.ts";
import type { LoopServices } from "./services.ts";
import { loopServices } from "./services.ts";

/** How many times a model can correct an answer that does not match the schema. */
const maxCorrections = 2;

/**
 * Creates the runtime that calls a model, runs the tools it requests, and calls it again. Every message is written
 * before the next request, which lets another process continue the turn from the log.
 */
export function createLoop(given: Partial<LoopServices> = {}): Runtime {
  const services = loopServices(given);
  return { run: (turn) => new Loop(turn, services).run() };
}

class Loop {
  readonly #turn: Turn;
  readonly #services: LoopServices;
  readonly #repeats = new RepeatDetector();
  #wasEmpty = false;
  #corrections = 0;
  #lastEntryId = "";

  constructor(turn: Turn, services: LoopServices) {
    this.#turn = turn;
    this.#services = services;
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

  /** Answers the calls that the previous owner of the run left unanswered. */
  async #resume(): Promise<TurnEnd | null> {
    const { open } = this.#turn;
    if (open === null || open.calls.length === 0) return null;
    const origin = { entryId: open.entryId, isReplay: true };
    return this.#afterCalls(await answerCalls(this.#turn, open.calls, origin, this.#services), open.entryId);
  }

  /** Sends one request and runs its tool calls. Returns `null` if the turn continues. */
  async #step(step: number): Promise<TurnEnd | null> {
    const turn = this.#turn;
    await turn.check();
    turn.signal.throwIfAborted();
    turn.emit({ type: "step", phase: "asked", step });
    const answer = await askModel(turn, this.#services).catch((error: unknown) => {
      if (error instanceof SkeinError) turn.emit({ type: "step", phase: "answered", step, code: error.code });
      throw error;
    });
    const usage = chargedUsage(answer, turn.model);
    turn.emit({ type: "step", phase: "answered", step, usage, finishReason: answer.stopReason });
    // Charged before it is written, so that an answer lost in a crash is still counted and a written answer is counted
    // only once. Charged before the hooks, because one of them can stop the run.
    const chargeError = await chargeAnswer(turn, answer);
    await turn.hooks.llmOutput(answer);
    if (isEmptyAnswer(answer) && !this.#wasEmpty) {
      // An empty answer is not written, because it invites more empty answers.
      this.#wasEmpty = true;
      if (chargeError !== null) throw chargeError.error;
      return null;
    }
    const persisted = persistedAnswer(answer, turn.tools);
    const { entry, hasOnlyInvalidCalls } = await turn.say(persisted);
    if (chargeError !== null) throw chargeError.error;
    if (entry !== null) this.#lastEntryId = entry.id;
    if (hasOnlyInvalidCalls === true) return this.#afterInvalidCalls(answer);
    const calls = restoreArguments(callsIn(entry), persisted, answer);
    if (entry === null || calls.length === 0) return this.#close(answer, entry);
    const origin = { entryId: entry.id, isReplay: false };
    return this.#afterCalls(await answerCalls(turn, calls, origin, this.#services), entry.id);
  }

  async #afterCalls({ answered, entryId, sleep }: AnsweredCalls, madeBy: string): Promise<TurnEnd | null> {
    this.#lastEntryId = entryId ?? madeBy;
    this.#wasEmpty = false;
    if (sleep !== null) return { kind: "yielded", entryId: this.#lastEntryId, sleep };
    if (this.#repeats.add(answered)) throw repeatedCall(answered[0]?.call);
    // Input is read only between steps. Input that arrives while the final answer is streaming starts the next run.
    if (await this.#turn.takeInput()) this.#repeats.reset();
    return null;
  }

  /**
   * Ends a turn that repeats invalid calls. The guard has already explained the problem to the model and would only
   * repeat itself.
   */
  #afterInvalidCalls({ content }: AnswerDraft): null {
    const calls = content.filter((block) => block.type === "toolCall");
    if (this.#repeats.addInvalid(calls)) throw repeatedCall(calls[0]);
    return null;
  }

  /** Ends the turn after an answer without calls, unless the answer does not match the schema. */
  async #close(answer: AnswerDraft, entry: Entry | null): Promise<TurnEnd | null> {
    const { outputSchema } = this.#turn;
    // A rejected message is not part of the session.
    const reply = entry === null ? "" : textOf(answer.content);
    const end = { kind: "answered", reply, entryId: this.#lastEntryId } as const;
    if (outputSchema === null || entry === null) return end;
    const read = await readOutput(reply, outputSchema);
    if ("output" in read) return { ...end, output: read.output };
    if (this.#corrections === maxCorrections)
      throw new SkeinError("invalid_output", { problem: read.problem });
    this.#corrections++;
    await this.#turn.say(correction(read.problem));
    return null;
  }
}

function repeatedCall(call: ToolCallBlock | undefined): SkeinError {
  return new SkeinError("repeated_call", { tool: call?.name ?? "" });
}

/** Returns the calls as written, because the guard removes calls that can never be answered. */
function callsIn(entry: Entry | null): ToolCallBlock[] {
  if (entry?.type !== "message" || entry.message.role !== "assistant") return [];
  return entry.message.content.filter((block) => block.type === "toolCall");
}

/**
 * Returns the answer with the arguments that tools write to the log (`Tool.persisted`), or the same object if nothing
 * changes.
 */
export function persistedAnswer(answer: AnswerDraft, tools: readonly Tool[]): AnswerDraft {
  const content = answer.content.map((block) => {
    if (block.type !== "toolCall") return block;
    const args = tools.find(({ name }) => name === block.name)?.persisted?.(block.arguments);
    return args === undefined || args === block.arguments ? block : { ...block, arguments: { ...args } };
  });
  return content.every((block, at) => block === answer.content[at]) ? answer : { ...answer, content };
}

/** Restores the model's original arguments in written calls, except those that a hook changed before the write. */
export function restoreArguments(
  written: readonly ToolCallBlock[],
  persisted: AnswerDraft,
  answer: AnswerDraft,
): readonly ToolCallBlock[] {
  if (persisted === answer) return written;
  return written.map((call) => {
    const at = persisted.content.findIndex((block) => block.type === "toolCall" && block.id === call.id);
    const [asked, stored] = [answer.content[at], persisted.content[at]];
    if (asked?.type !== "toolCall" || stored?.type !== "toolCall" || asked === stored) return call;
    const fields = Object.entries(call.arguments).map(([name, value]) => {
      const isRestored =
        Object.hasOwn(asked.arguments, name) && isDeepStrictEqual(value, stored.arguments[name]);
      return [name, isRestored ? asked.arguments[name] : value];
    });
    return { ...call, arguments: Object.fromEntries(fields) as ToolCallBlock["arguments"] };
  });
}

const maxRepeats = 3;

/** Detects a model that makes the same calls and receives the same results, message after message. */
export class RepeatDetector {
  #last = "";
  #count = 0;

  /** Returns `true` once three messages in a row have made the same calls and received the same results. */
  add(calls: readonly AnsweredCall[]): boolean {
    return this.#see(
      calls.map(({ call, result }) => [call.name, call.arguments, result.isError, result.content]),
    );
  }

  /** Like `add`, but for invalid calls that were not made. */
  addInvalid(calls: readonly Pick<ToolCallBlock, "name" | "arguments">[]): boolean {
    return this.#see(calls.map((call) => [call.name, call.arguments, "invalid"]));
  }

  /** Call this after new input, because the same calls can be useful again. */
  reset(): void {
    this.#last = "";
    this.#count = 0;
  }

  #see(calls: readonly (readonly unknown[])[]): boolean {
    const hashes = new Set(calls.map((call) => shortHash(canonicalJson(call))));
    const step = [...hashes].toSorted().join(" ");
    this.#count = step === this.#last ? this.#count + 1 : 1;
    this.#last = step;
    return this.#count >= maxRepeats;
  }
}
