import type { LanguageModelV4 } from "@ai-sdk/provider";
import { SkeinError } from "../../core/errors.ts";
import { modelInfo } from "../../transcript/model-table.ts";
import type { AnswerDraft } from "../ai-sdk/from-response.ts";
import type { RequestOptions, Turn, TurnRequest } from "../contract.ts";
import { PartCollector } from "./collect-parts.ts";
import type { Failure } from "./failure.ts";
import { failureOf } from "./failure.ts";
import { errorOf, overflowError } from "./failure-error.ts";
import { chargedUsage, unfinishedAnswer, wholeAnswer } from "./messages.ts";
import { buildModelCall } from "./model-call.ts";
import { readAnswer } from "./read-answer.ts";
import { retryDelay } from "./retry-delay.ts";
import type { LoopDeps } from "./waits.ts";
import { unlessAborted } from "./waits.ts";

/** Characters of an answer that did not stop: later requests show it to the model again. */
const keptOfEndless = 100_000;

/**
 * The next answer of the model, not yet written. Asks again where that may help and makes room where it is needed; when it
 * gives up, or the turn is aborted, what there is of the answer is written, and the reason thrown.
 */
export async function askModel(turn: Turn, deps: LoopDeps): Promise<AnswerDraft> {
  let request = await requestWithRoom(turn);
  let isSealedThinkingRejected = false;
  for (let attempt = 1; ; attempt++) {
    const tried = await tryOnce(turn, request, attempt, deps);
    if (tried.answer !== null) return tried.answer;
    const { failure, collector, error } = tried;
    if (failure.kind === "overflow" && (await turn.makeRoom(sizeOf(turn, request), "overflow"))) {
      request = await requestWithRoom(turn);
      // Nothing is wrong with the model: this was no attempt.
      attempt--;
    } else if (failure.kind === "sealed_thinking" && !isSealedThinkingRejected) {
      isSealedThinkingRejected = true;
      turn.emit({ type: "retry", attempt, delayMs: 0, code: failure.code, error: failure.text });
      request = await requestWithRoom(turn, { isSealedThinkingRejected });
    } else if (failure.kind === "transient" && attempt <= turn.limits.maxRetries) {
      const delayMs = retryDelay(attempt, failure.retryAfterMs, deps.random);
      turn.emit({ type: "retry", attempt, delayMs, code: failure.code, error: failure.text });
      await deps.sleep(delayMs, turn.signal);
      await turn.check();
    } else {
      const retryable = failure.kind === "transient";
      const ending = {
        stopReason: "error",
        errorMessage: failure.text,
        attempts: attempt,
        retryable,
        ...(failure.code === "answer_too_long" ? { maxCharacters: keptOfEndless } : {}),
      } as const;
      const unfinished = unfinishedAnswer(collector, ending, turn.model, deps.clock.now());
      await turn.say(unfinished);
      // An answer that the provider stopped has been paid for all the same.
      if (collector.facts?.usage !== undefined) await turn.charge(chargedUsage(unfinished, turn.model));
      throw errorOf(failure, error, turn, attempt, sizeOf(turn, request));
    }
  }
}

type Tried =
  | { readonly answer: AnswerDraft }
  | {
      readonly answer: null;
      readonly failure: Failure;
      readonly collector: PartCollector;
      readonly error: unknown;
    };

async function tryOnce(turn: Turn, request: TurnRequest, attempt: number, deps: LoopDeps): Promise<Tried> {
  const { options, toolNames } = buildModelCall(turn, request.messages);
  const collector = new PartCollector(toolNames);
  const { model, limits, signal } = turn;
  const onDelta = (delta: { kind: "text" | "thinking"; delta: string }) => {
    turn.emit({ type: "delta", ...delta });
  };
  await turn.hooks.llmInput(request.messages);
  try {
    const opened = (await unlessAborted(model.open(), signal)) as LanguageModelV4;
    const facts = await readAnswer(
      opened,
      options,
      collector,
      { signal, stallMs: limits.stallMs, onDelta },
      deps,
    );
    return { answer: wholeAnswer(collector, facts, model, deps.clock.now()) };
  } catch (error) {
    if (signal.aborted) return await keepAborted(turn, collector, attempt, deps);
    return { answer: null, failure: failureOf(error, deps), collector, error };
  }
}

/** What was said until then is kept. Under a lost fence nothing can be, and the reason for the abort is told all the same. */
async function keepAborted(
  turn: Turn,
  collector: PartCollector,
  attempts: number,
  deps: LoopDeps,
): Promise<never> {
  if (collector.texts.some((text) => text.trim() !== "")) {
    const errorMessage = "The answer was aborted.";
    const ending = { stopReason: "aborted", errorMessage, attempts, retryable: false } as const;
    await turn
      .say(unfinishedAnswer(collector, ending, turn.model, deps.clock.now()))
      .catch((error: unknown) => {
        if (!(error instanceof SkeinError && error.code === "fenced")) throw error;
      });
  }
  throw turn.signal.reason;
}

async function requestWithRoom(turn: Turn, options: RequestOptions = {}): Promise<TurnRequest> {
  let request = await turn.request(options);
  while (request.isOverThreshold) {
    const size = sizeOf(turn, request);
    if (await turn.makeRoom(size, "threshold")) request = await turn.request();
    // Over the threshold it may still fit. Beyond the window, or without its older part, it must not be sent.
    else if (request.context.cut === null && size.tokens <= size.contextWindow) return request;
    else throw overflowError(size, null);
  }
  return request;
}

/** A window that nobody knows is at least not larger than what did not fit. */
function sizeOf({ model }: Turn, { tokens }: TurnRequest): { tokens: number; contextWindow: number } {
  const known = modelInfo(model.provider, model.model, model.policy.api)?.contextWindow;
  return { tokens, contextWindow: model.info.contextWindow ?? known ?? tokens };
}
