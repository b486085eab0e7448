import { isRecord } from "../../../core/shape.ts";

/** What a turn of an agent used and cost. */

type Fields = Readonly<Record<string, unknown>>;

export interface TurnUsage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
  cost: { input: number; output: number; cacheRead: number; cacheWrite: number; total: number };
}

/**
 * Tokens as we count them: the four add up to the total. The protocol says of the same numbers both that they are of
 * this turn and that they are of all turns; the agents that send them mean the turn, and so do we.
 */
export function turnUsage(usage: unknown, costUsd: number | null): TurnUsage {
  const told: Fields = isRecord(usage) ? usage : {};
  const [input, cacheRead] = [count(told.inputTokens), count(told.cachedReadTokens)];
  const [cacheWrite, thoughts] = [count(told.cachedWriteTokens), count(told.thoughtTokens)];
  const answer = count(told.outputTokens);
  const without = input + answer + cacheRead + cacheWrite;
  // Some count thoughts beside the answer, most within it; the total tells.
  const output = thoughts > 0 && count(told.totalTokens) === without + thoughts ? answer + thoughts : answer;
  const totalTokens = input + output + cacheRead + cacheWrite;
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: costUsd ?? 0 };
  return { input, output, cacheRead, cacheWrite, totalTokens, cost };
}

const mostTokens = 1e12;

function count(value: unknown): number {
  return typeof value === "number" && value > 0 ? Math.floor(Math.min(value, mostTokens)) : 0;
}

/** The dollars that an agent tells are of its whole session: a turn cost what they grew by. */
export class CostMeter {
  #before: number | null;
  #now: number | null = null;

  /** What they were before the turn; `null`: not known, and then what is told first is taken for it. */
  constructor(before: number | null) {
    this.#before = before;
  }

  /** Only in dollars; credits are no money of ours. */
  take(cost: unknown): void {
    if (!isRecord(cost) || cost.currency !== "USD") return;
    const { amount } = cost;
    if (typeof amount !== "number" || !Number.isFinite(amount) || amount < 0) return;
    this.#before ??= amount;
    this.#now = amount;
  }

  /** What the next turn begins with; `null`: nothing was ever told. */
  get sum(): number | null {
    return this.#now ?? this.#before;
  }

  /** `null`: not known. Less than before means that the agent has begun to count anew. */
  get ofTurn(): number | null {
    if (this.#now === null || this.#before === null) return null;
    const grown = this.#now >= this.#before ? this.#now - this.#before : this.#now;
    return Number(grown.toFixed(10));
  }
}
