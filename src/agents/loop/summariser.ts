import type { LanguageModelV4 } from "@ai-sdk/provider";
import { SkeinError } from "../../core/errors.ts";
import type { Summarize, SummaryRequest } from "../../transcript/compaction/summarize-piece.ts";
import { modelRequest } from "../ai-sdk/model-request.ts";
import { usageOf } from "../ai-sdk/usage.ts";
import type { SummarizerOptions, TurnModel } from "../contract.ts";
import { PartCollector } from "./collect-parts.ts";
import { failureOf } from "./failure.ts";
import { readAnswer } from "./read-answer.ts";
import { retryDelay } from "./retry-delay.ts";
import type { LoopDeps } from "./waits.ts";

/**
 * Summaries by the model of a turn, each request retried as any other is. A prompt that is too long for the model rejects
 * with `context_overflow`.
 */
export function summarizerOf(model: TurnModel, options: SummarizerOptions, deps: LoopDeps): Summarize {
  return async (request) => {
    const signal =
      request.signal === undefined ? options.signal : AbortSignal.any([options.signal, request.signal]);
    for (let attempt = 1; ; attempt++) {
      try {
        return await askOnce(model, request, { ...options, signal }, deps);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        const failure = failureOf(error, deps);
        if (failure.kind === "overflow") throw new SkeinError("context_overflow", { problem: failure.text });
        if (failure.kind !== "transient" || attempt > options.limits.maxRetries)
          throw new Error(failure.text);
        const delayMs = retryDelay(attempt, failure.retryAfterMs, deps.random);
        options.onRetry?.({ type: "retry", attempt, delayMs, code: failure.code, error: failure.text });
        await deps.sleep(delayMs, signal);
      }
    }
  };
}

async function askOnce(
  turnModel: TurnModel,
  { system, prompt, maxTokens }: SummaryRequest,
  { signal, limits, onUsage }: SummarizerOptions,
  deps: LoopDeps,
): Promise<string> {
  const model = (await turnModel.open()) as LanguageModelV4;
  const { options } = modelRequest({
    transcript: [{ role: "user", content: prompt }],
    policy: turnModel.policy,
    system,
    tools: [],
    maxOutputTokens: maxTokens,
    info: turnModel.info,
  });
  const collector = new PartCollector();
  const reading = { signal, stallMs: limits.stallMs, onDelta: () => undefined };
  const { usage } = await readAnswer(model, options, collector, reading, deps);
  onUsage(usageOf(usage));
  return collector.texts.join("");
}
