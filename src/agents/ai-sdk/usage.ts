import type { LanguageModelV4FinishReason, LanguageModelV4Usage } from "@ai-sdk/provider";
import type { AssistantMessage, Usage } from "../../core/messages.ts";

/**
 * Tokens, both ways. With us `input` is what was read and not found in the cache, as pi counts it, and the four add up
 * to the total. The SDK's packages have each provider's own way behind them: Anthropic counts cached tokens beside the
 * input, the others within it; Google counts thoughts beside the answer, the others within it.
 */

type CompleteUsage = Required<Usage>;

export function usageOf(
  usage: LanguageModelV4Usage | undefined,
  cost: CompleteUsage["cost"] = noCost,
): CompleteUsage {
  const { total, noCache, cacheRead = 0, cacheWrite = 0 } = usage?.inputTokens ?? ({} as Partial<Counts>);
  const { total: out, text = 0, reasoning = 0 } = usage?.outputTokens ?? ({} as Partial<OutputCounts>);
  // Some servers report more cached tokens than tokens.
  const input = Math.max(0, noCache ?? (total ?? 0) - cacheRead - cacheWrite);
  const output = out ?? text + reasoning;
  const totalTokens = input + output + cacheRead + cacheWrite;
  return { input, output, cacheRead, cacheWrite, totalTokens, cost };
}

type Counts = LanguageModelV4Usage["inputTokens"];
type OutputCounts = LanguageModelV4Usage["outputTokens"];

const noCost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };

type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted";
type Unified = LanguageModelV4FinishReason["unified"];

/** Some servers stop, or say nothing, where they mean that a tool is to be called. */
export function stopReasonOf({ unified }: LanguageModelV4FinishReason, hasCalls: boolean): StopReason {
  switch (unified) {
    case "length":
      return "length";
    case "content-filter":
    case "error":
    case "interrupted":
      return "error";
    default:
      return hasCalls ? "toolUse" : "stop";
  }
}

/** What went wrong, in a sentence; `undefined` where nothing did. */
export function errorMessageOf({ unified, raw }: LanguageModelV4FinishReason): string | undefined {
  const word = raw === undefined ? "" : ` (${raw})`;
  switch (unified) {
    case "content-filter":
      return `The provider stopped the answer for its content${word}.`;
    case "error":
      return `The provider ended the answer with an error${word}.`;
    case "interrupted":
      return `The answer ended before it was complete${word}.`;
    default:
      return undefined;
  }
}

const unifiedOf: Readonly<Record<string, Unified>> = {
  stop: "stop",
  length: "length",
  toolUse: "tool-calls",
  error: "error",
  aborted: "interrupted",
};

/** The reason as the provider told it, where that was kept; `undefined`: it is not known. */
export function finishReasonOf(message: AssistantMessage): LanguageModelV4FinishReason | undefined {
  const { unified, raw } = message.skein?.finishReason ?? {};
  const isKept = typeof unified === "string" && (raw === undefined || typeof raw === "string");
  if (isKept) return { unified: unified as Unified, raw };
  const { stopReason } = message;
  if (stopReason === undefined) return undefined;
  const known = Object.hasOwn(unifiedOf, stopReason) ? unifiedOf[stopReason] : undefined;
  return { unified: known ?? "other", raw: undefined };
}
