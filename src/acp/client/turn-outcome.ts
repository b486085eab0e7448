import { isRecord } from "../../core/is-record.ts";
import { cutText } from "../../core/text.ts";
import { failed } from "./errors.ts";
import { lineText } from "./tool-content.ts";

/** The outcome, usage and cost of an agent's turn. */

/** The fields that Skein reads from the response to a prompt. */
export interface PromptResponse {
  readonly stopReason: string;
  readonly usage: unknown;
}

export function readPromptResponse(agent: string, response: unknown): PromptResponse {
  if (isRecord(response) && typeof response.stopReason === "string")
    return { stopReason: response.stopReason, usage: response.usage };
  throw failed(agent, "its response to the prompt does not follow the protocol: it has no stopReason");
}

export type AgentTurnEnd =
  /** `reason` explains why the agent ended a turn as canceled although Skein had not canceled it. */
  | { readonly stopReason: string; readonly usage?: unknown; readonly reason?: string }
  | { readonly failed: string };

export interface TurnOutcome {
  readonly stopReason: "stop" | "length" | "error" | "aborted";
  readonly errorMessage?: string;
  /** The agent's own stop reason, or `null` if the turn failed without one. */
  readonly raw: string | null;
  /** The result to write for each unfinished call. */
  readonly openCall: string;
}

const maxMessageChars = 4000;

export function outcomeOf(end: AgentTurnEnd): TurnOutcome {
  if ("failed" in end) {
    const errorMessage = cutText(end.failed, maxMessageChars);
    return { stopReason: "error", errorMessage, raw: null, openCall: openCallText("failed") };
  }
  const raw = lineText(end.stopReason, 64);
  const openCall = openCallText("ended");
  switch (raw) {
    case "end_turn":
      return { stopReason: "stop", raw, openCall };
    case "max_tokens":
    case "max_turn_requests":
      return { stopReason: "length", raw, openCall };
    case "cancelled": {
      const errorMessage = cutText(end.reason ?? "The turn was aborted.", maxMessageChars);
      return { stopReason: "aborted", errorMessage, raw, openCall: openCallText("was aborted") };
    }
    case "refusal":
      return { stopReason: "error", errorMessage: "The agent refused to continue.", raw, openCall };
    default: {
      const errorMessage = `The agent stopped for an unknown reason (${raw}).`;
      return { stopReason: "error", errorMessage, raw, openCall };
    }
  }
}

function openCallText(how: string): string {
  return `[skein] This call has no result, because the agent's turn ${how} before it returned one.`;
}

export interface TurnUsage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
  cost: { input: number; output: number; cacheRead: number; cacheWrite: number; total: number };
}

/**
 * Returns the token counts for one turn. The four counts add up to the total. The protocol describes these counts as
 * per turn in one place and as per session in another. The agents that send them count per turn.
 */
export function turnUsage(usage: unknown, costUsd: number | null): TurnUsage {
  const counts = isRecord(usage) ? usage : {};
  const [input, cacheRead] = [tokenCount(counts.inputTokens), tokenCount(counts.cachedReadTokens)];
  const [cacheWrite, thoughts] = [tokenCount(counts.cachedWriteTokens), tokenCount(counts.thoughtTokens)];
  const answer = tokenCount(counts.outputTokens);
  // Most agents include thinking in the output, but some count it separately. The total shows which.
  const areThoughtsApart =
    thoughts > 0 && tokenCount(counts.totalTokens) === input + answer + cacheRead + cacheWrite + thoughts;
  const output = areThoughtsApart ? answer + thoughts : answer;
  const totalTokens = input + output + cacheRead + cacheWrite;
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: costUsd ?? 0 };
  return { input, output, cacheRead, cacheWrite, totalTokens, cost };
}

const maxTokens = 1e12;

function tokenCount(value: unknown): number {
  return typeof value === "number" && value > 0 ? Math.floor(Math.min(value, maxTokens)) : 0;
}

/**
 * Computes the cost of a turn. Agents report the cost of their whole session, so the cost of a turn is the difference.
 */
export class CostMeter {
  #before: number | null;
  #now: number | null = null;

  /** `before` is the cost when the turn starts. If `null`, the first reported amount is used instead. */
  constructor(before: number | null) {
    this.#before = before;
  }

  /** Only dollars are counted, because other currencies cannot be charged to a budget. */
  take(cost: unknown): void {
    if (!isRecord(cost) || cost.currency !== "USD") return;
    const { amount } = cost;
    if (typeof amount !== "number" || !Number.isFinite(amount) || amount < 0) return;
    this.#before ??= amount;
    this.#now = amount;
  }

  /** The cost at the start of the next turn, or `null` if the agent has never reported one. */
  get sum(): number | null {
    return this.#now ?? this.#before;
  }

  /** `null` if unknown. An amount lower than the previous one means that the agent has restarted its count. */
  get turnCost(): number | null {
    if (this.#now === null || this.#before === null) return null;
    const grown = this.#now >= this.#before ? this.#now - this.#before : this.#now;
    return Number(grown.toFixed(10));
  }
}
