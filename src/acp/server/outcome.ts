import type { PromptResponse, Usage } from "@agentclientprotocol/sdk/unstable";
import type { SentPayload } from "../../protocol/runs.ts";
import { failedTurn } from "./refusal.ts";

/** Limits of ours that end a turn, and are no failure. */
const limits = new Set(["budget_exceeded", "step_limit"]);

export interface Ended {
  readonly sent: SentPayload;
  /** Of the last answer. */
  readonly stopReason: string | null;
  /** The editor asked for the end. */
  readonly isCancelled: boolean;
}

/** How a turn ended, in ACP's words. One that failed is thrown, with our code. */
export function promptResponse({ sent, stopReason, isCancelled }: Ended): PromptResponse {
  const usage = usageOf(sent.usage);
  const { state, error } = sent;
  if (isCancelled || state === "aborted") return { stopReason: "cancelled", usage };
  if (state === "ok" || state === "merged")
    return { stopReason: stopReason === "length" ? "max_tokens" : "end_turn", usage };
  if (error !== undefined && limits.has(error.code)) return { stopReason: "max_turn_requests", usage };
  throw failedTurn(error?.code ?? state, error?.message ?? `The run ended as ${state}.`);
}

/** What the user is told beside a reason that says too little. */
export function limitText({ error }: SentPayload): string | null {
  return error !== undefined && limits.has(error.code) ? error.message : null;
}

function usageOf({ input, output, cacheRead, cacheWrite, totalTokens }: SentPayload["usage"]): Usage {
  return {
    inputTokens: input,
    outputTokens: output,
    cachedReadTokens: cacheRead,
    cachedWriteTokens: cacheWrite,
    totalTokens,
  };
}
