import type { LanguageModelV4 } from "@ai-sdk/provider";
import { SkeinError } from "../../core/errors.ts";
import type { Summarize, SummaryRequest } from "../../transcript/compaction/summarize-piece.ts";
import type { SummarizerOptions, TurnModel } from "../contract.ts";
import { usageOf } from "../models/assistant-message.ts";
import { modelRequest } from "../models/model-request.ts";
import { failureOf, retryDelay } from "./failure.ts";
import { PartCollector, readAnswer } from "./read-answer.ts";
import type { LoopServices } from "./services.ts";

/**
 * Writes summaries with the turn's model. Retries transient failures. Throws `context_overflow` if a prompt is too
 * long.
 */
export function summarizerOf(
  model: TurnModel,
  options: SummarizerOptions,
  services: LoopServices,
): Summarize {
  return async (request) => {
    const signal =
      request.signal === undefined ? options.signal : AbortSignal.any([options.signal, request.signal]);
    for (let attempt = 1; ; attempt++) {
      try {
        return await askOnce(model, request, { ...options, signal }, services);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        const failure = failureOf(error, services);
        if (failure.kind === "overflow") throw new SkeinError("context_overflow", { problem: failure.text });
        if (failure.kind !== "transient" || attempt > options.limits.maxRetries)
          throw new Error(failure.text);
        const delayMs = retryDelay(attempt, failure.retryAfterMs, services.random);
        options.onRetry?.({ type: "retry", attempt, delayMs, code: failure.code, error: failure.text });
        await services.sleep(delayMs, signal);
      }
    }
  };
}

async function askOnce(
  turnModel: TurnModel,
  { system, prompt, maxTokens }: SummaryRequest,
  { signal, limits, onUsage }: SummarizerOptions,
  services: LoopServices,
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
  try {
    await readAnswer(model, options, collector, reading, services);
  } finally {
    // Providers also charge for answers that were cut off or rejected.
    if (collector.facts !== null) onUsage(usageOf(collector.facts.usage));
  }
  return collector.texts.join("");
}
