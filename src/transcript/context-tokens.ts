import type { AssistantMessage } from "../core/messages.ts";
import type { TranscriptMessage } from "./contract.ts";
import { estimateTokens } from "./estimate-tokens.ts";
import type { Vocabulary } from "./token-rates.ts";

export interface ContextTokens {
  readonly tokens: number;
  /** What the provider counted, its own instructions and tools included; 0: nothing that holds. */
  readonly measured: number;
  /** What came after that, or all of it. */
  readonly estimated: number;
}

export interface ContextTokensOptions {
  /** When the last compaction was, in milliseconds: what was counted before it counted what is gone. */
  readonly compactedAt?: number;
  readonly vocabulary?: Vocabulary;
}

/** How large a context is: the provider's word for what it has seen, an estimate for what came after. */
export function contextTokens(
  messages: readonly TranscriptMessage[],
  { compactedAt = Number.NEGATIVE_INFINITY, vocabulary }: ContextTokensOptions = {},
): ContextTokens {
  const last = lastCounted(messages, compactedAt);
  const measured = last === -1 ? 0 : countedIn(messages[last] as AssistantMessage);
  const estimated = estimateTokens(last === -1 ? messages : messages.slice(last + 1), vocabulary);
  return { tokens: measured + estimated, measured, estimated };
}

/** The last message whose count holds; -1: none. The order counts: behind an old message there are only older ones. */
function lastCounted(messages: readonly TranscriptMessage[], compactedAt: number): number {
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index] as TranscriptMessage;
    const time = message.timestamp ?? Number.NEGATIVE_INFINITY;
    if (message.timestamp !== undefined && time <= compactedAt) return -1;
    const isKnown = time > compactedAt || compactedAt === Number.NEGATIVE_INFINITY;
    if (isKnown && message.role === "assistant" && countedIn(message) > 0) return index;
  }
  return -1;
}

/** What was cut off was counted before its end, if at all; a count of the answer alone is not that of a request. */
function countedIn({ stopReason, usage }: AssistantMessage): number {
  if (usage === undefined || stopReason === "error" || stopReason === "aborted") return 0;
  const seen = amount(usage.input) + amount(usage.cacheRead) + amount(usage.cacheWrite);
  const output = amount(usage.output);
  const total = amount(usage.totalTokens);
  if (seen > 0) return seen + output;
  return total > output ? total : 0;
}

function amount(value: number | undefined): number {
  return value !== undefined && Number.isFinite(value) && value > 0 ? value : 0;
}
