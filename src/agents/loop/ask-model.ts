import type { LanguageModelV4 } from "@ai-sdk/provider";
import { unlessAborted } from "../../core/concurrency.ts";
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

/**
 * How much of an overlong answer to keep. The rest is dropped, because later requests send the answer to the model
 * again.
 */
const maxOverlongCharacters = 100_000;

/**
 * Returns the model's next answer without writing it. Retries transient failures and shrinks a context that is too
 * large. If it gives up, or the turn is aborted, it writes the incomplete answer and throws the reason.
 */
export async function askModel(turn: Turn, services: LoopServices): Promise<AnswerDraft> {
  let request = await requestWithRoom(turn);
  let isSealedThinkingRejected = false;
  for (let attempt = 1; ; attempt++) {
    const result = await tryOnce(turn, request, attempt, services);
    if (result.answer !== null) return result.answer;
    const { failure, error, chargeError } = result;
    if (chargeError !== null) {
      await writeFailed(turn, result, attempt, services);
      throw chargeError.error;
    }
    if (failure.kind === "overflow" && (await turn.makeRoom(sizeOf(turn, request), "overflow"))) {
      request = await requestWithRoom(turn);
      // The model did not fail, so this is not counted as an attempt.
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
      await writeFailed(turn, result, attempt, services);
      throw errorOf(failure, error, turn, attempt, sizeOf(turn, request));
    }
  }
}

interface FailedAttempt {
  readonly answer: null;
  readonly failure: Failure;
  readonly collector: PartCollector;
  readonly error: unknown;
  readonly chargeError: ChargeError | null;
}

type Attempt = { readonly answer: AnswerDraft } | FailedAttempt;

async function tryOnce(
  turn: Turn,
  request: TurnRequest,
  attempt: number,
  services: LoopServices,
): Promise<Attempt> {
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
    const chargeError = await chargeUnfinished(turn, collector, services);
    if (signal.aborted) return await writeAborted(turn, collector, attempt, services);
    return { answer: null, failure: failureOf(error, services), collector, error, chargeError };
  }
}

/** An error that ends the turn, such as an exceeded budget. */
interface ChargeError {
  readonly error: unknown;
}

/** Charges an answer to the run. Returns an error instead of throwing it, so that the answer can be written first. */
export function chargeAnswer(turn: Turn, answer: AnswerDraft): Promise<ChargeError | null> {
  return turn.charge(chargedUsage(answer, turn.model)).then(
    () => null,
    (error: unknown) => ({ error }),
  );
}

/** Providers also charge for answers that were cut off or rejected. */
async function chargeUnfinished(
  turn: Turn,
  collector: PartCollector,
  { clock }: LoopServices,
): Promise<ChargeError | null> {
  const { facts } = collector;
  if (facts?.usage === undefined) return null;
  return chargeAnswer(turn, wholeAnswer(collector, facts, turn.model, clock.now()));
}

/** Writes the incomplete answer of the last attempt. */
async function writeFailed(
  turn: Turn,
  { failure, collector }: FailedAttempt,
  attempts: number,
  services: LoopServices,
): Promise<void> {
  const ending = {
    stopReason: "error",
    errorMessage: failure.text,
    attempts,
    retryable: failure.kind === "transient",
    ...(failure.code === "answer_too_long" ? { maxCharacters: maxOverlongCharacters } : {}),
  } as const;
  await turn.say(unfinishedAnswer(collector, ending, turn.model, services.clock.now()));
}

/** Writes the incomplete answer and throws the abort reason, even if the fence was lost and nothing can be written. */
async function writeAborted(
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
    // A request over the threshold might still fit in the window, but a request whose older part was cut off must not
    // be sent.
    else if (request.context.cut === null && size.tokens <= size.contextWindow) return request;
    else throw overflowError(size, null);
  }
  return request;
}

/** Assumes that an unknown window is no larger than the request that did not fit. */
function sizeOf({ model }: Turn, { tokens }: TurnRequest): { tokens: number; contextWindow: number } {
  const known = modelInfo(model.provider, model.model, model.policy.api)?.contextWindow;
  return { tokens, contextWindow: model.info.contextWindow ?? known ?? tokens };
}

/** Returns the complete answer, with its cost if the price is known. */
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

/** Returns the usage to charge. If the price is unknown, the cost is unknown rather than zero. */
export function chargedUsage({ usage }: AnswerDraft, { price }: TurnModel): Usage {
  if (price !== null) return usage;
  const { cost: _, ...tokens } = usage;
  return tokens;
}

interface Ending {
  readonly stopReason: "error" | "aborted";
  readonly errorMessage: string;
  /** The number of requests so far, and whether another one might succeed. */
  readonly attempts: number;
  readonly retryable: boolean;
  /** If absent, there is no limit. */
  readonly maxCharacters?: number;
}

/** Returns the text of an incomplete answer. Its calls are removed so that no results are needed. */
function unfinishedAnswer(
  collector: PartCollector,
  ending: Ending,
  model: TurnModel,
  timestamp: number,
): AnswerDraft {
  const { stopReason, errorMessage, attempts, retryable, maxCharacters = Number.POSITIVE_INFINITY } = ending;
  const facts = collector.facts ?? { finishReason: { unified: "interrupted" as const, raw: undefined } };
  const whole = wholeAnswer(collector, facts, model, timestamp);
  // Signatures are dropped because they are valid only for the complete answer.
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

/** Keeps the first `maxCharacters` characters across all texts and notes how many were removed. */
function cutTexts(texts: readonly string[], maxCharacters: number): readonly string[] {
  const kept: string[] = [];
  let room = maxCharacters;
  for (const text of texts) {
    if (room > 0) kept.push(text.length <= room ? text : text.slice(0, room).toWellFormed());
    room -= text.length;
  }
  const last = kept.pop();
  if (last === undefined) return texts;
  return [...kept, room >= 0 ? last : `${last}\n[${-room} more characters were not stored]`];
}

/** Whether an answer finished normally but has neither text nor calls. */
export function isEmptyAnswer({ content, stopReason }: AnswerDraft): boolean {
  if (stopReason !== "stop" && stopReason !== "toolUse") return false;
  return content.every((block) => {
    if (block.type === "text") return block.text.trim() === "" && block.skein?.part === undefined;
    return block.type === "thinking";
  });
}
