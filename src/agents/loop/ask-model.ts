import type { LanguageModelV4 } from "@ai-sdk/provider";
import { unlessAborted } from "../../core/abort.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Usage } from "../../core/messages.ts";
import { modelInfo } from "../../transcript/model-table.ts";
import type { RequestOptions, Turn, TurnModel, TurnRequest } from "../contract.ts";
import type { AnswerDraft, ResponseFacts } from "../models/assistant-message.ts";
import { assistantMessageOf, usageOf } from "../models/assistant-message.ts";
import { costOf } from "../models/prices.ts";
import type { Failure } from "./failure.ts";
import { errorOf, failureOf, overflowError, retryDelay } from "./failure.ts";
import { buildModelCall } from "./model-call.ts";
import { PartCollector, readAnswer } from "./read-answer.ts";
import type { LoopServices } from "./services.ts";

/** Characters of an answer that did not stop: later requests show it to the model again. */
const keptOfEndless = 100_000;

/**
 * The next answer of the model, not yet written. Asks again where that may help and makes room where it is needed; when it
 * gives up, or the turn is aborted, what there is of the answer is written, and the reason thrown.
 */
export async function askModel(turn: Turn, services: LoopServices): Promise<AnswerDraft> {
  let request = await requestWithRoom(turn);
  let isSealedThinkingRejected = false;
  for (let attempt = 1; ; attempt++) {
    const tried = await tryOnce(turn, request, attempt, services);
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
      const delayMs = retryDelay(attempt, failure.retryAfterMs, services.random);
      turn.emit({ type: "retry", attempt, delayMs, code: failure.code, error: failure.text });
      await services.sleep(delayMs, turn.signal);
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
      const unfinished = unfinishedAnswer(collector, ending, turn.model, services.clock.now());
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

async function tryOnce(
  turn: Turn,
  request: TurnRequest,
  attempt: number,
  services: LoopServices,
): Promise<Tried> {
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
      services,
    );
    return { answer: wholeAnswer(collector, facts, model, services.clock.now()) };
  } catch (error) {
    if (signal.aborted) return await keepAborted(turn, collector, attempt, services);
    return { answer: null, failure: failureOf(error, services), collector, error };
  }
}

/** What was said until then is kept. Under a lost fence nothing can be, and the reason for the abort is told all the same. */
async function keepAborted(
  turn: Turn,
  collector: PartCollector,
  attempts: number,
  services: LoopServices,
): Promise<never> {
  if (collector.texts.some((text) => text.trim() !== "")) {
    const errorMessage = "The answer was aborted.";
    const ending = { stopReason: "aborted", errorMessage, attempts, retryable: false } as const;
    await turn
      .say(unfinishedAnswer(collector, ending, turn.model, services.clock.now()))
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

/** What the loop writes of an answer: whole, or as far as it came. */

/** The whole answer, with what it cost where that is known. */
function wholeAnswer(
  collector: PartCollector,
  facts: ResponseFacts,
  model: TurnModel,
  timestamp: number,
): AnswerDraft {
  const { provider, model: name, policy, price } = model;
  const about = { provider, api: policy.api, model: name, timestamp };
  const cost = price === null ? {} : { cost: costOf(usageOf(facts.usage), price) };
  return assistantMessageOf(collector.content, facts, { ...about, ...cost });
}

/** As it is charged: without a price there is no cost, which is not the same as none. */
export function chargedUsage({ usage }: AnswerDraft, { price }: TurnModel): Usage {
  if (price !== null) return usage;
  const { cost: _, ...tokens } = usage;
  return tokens;
}

interface Unfinished {
  readonly stopReason: "error" | "aborted";
  readonly errorMessage: string;
  /** How often the model was asked, and whether asking once more may help. */
  readonly attempts: number;
  readonly retryable: boolean;
  /** Left out: all of it is kept. */
  readonly maxCharacters?: number;
}

/** The words of an answer that did not come to its end. Its calls are left out: it owes nothing. */
function unfinishedAnswer(
  collector: PartCollector,
  ending: Unfinished,
  model: TurnModel,
  timestamp: number,
): AnswerDraft {
  const { stopReason, errorMessage, attempts, retryable, maxCharacters = Number.POSITIVE_INFINITY } = ending;
  const facts = collector.facts ?? { finishReason: { unified: "interrupted" as const, raw: undefined } };
  const whole = wholeAnswer(collector, facts, model, timestamp);
  // As plain words: what a provider said of them holds for the whole answer only.
  const texts = collector.texts.filter((text) => text.trim() !== "");
  const tries = { attempts, retryable };
  return {
    ...whole,
    content: cutTexts(texts, maxCharacters).map((text) => ({ type: "text", text })),
    stopReason,
    errorMessage,
    skein: { ...whole.skein, ...tries },
  };
}

/** The first characters of all texts together, and how many are missing. */
function cutTexts(texts: readonly string[], maxCharacters: number): readonly string[] {
  const kept: string[] = [];
  let room = maxCharacters;
  for (const text of texts) {
    if (room > 0) kept.push(text.length <= room ? text : text.slice(0, room).toWellFormed());
    room -= text.length;
  }
  const last = kept.pop();
  if (last === undefined) return texts;
  return [...kept, room >= 0 ? last : `${last}\n[${-room} more characters were not kept]`];
}

/** Nothing that anybody could read or do. */
export function isEmptyAnswer({ content, stopReason }: AnswerDraft): boolean {
  if (stopReason !== "stop" && stopReason !== "toolUse") return false;
  return content.every((block) => {
    if (block.type === "text") return block.text.trim() === "" && block.skein?.part === undefined;
    return block.type === "thinking";
  });
}
