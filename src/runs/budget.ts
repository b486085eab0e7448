import { SkeinError } from "../core/errors.ts";
import type { BudgetFigures, BudgetLimits, RunUsage } from "./contract.ts";

export const defaultLimits: BudgetLimits = { hops: 8, runs: 100, tokens: null, costUsd: null, pingPong: 5 };

/** The stored usage of a root. `isPriced`: `knownCostUsd` is the whole cost. */
export interface RootFigures {
  readonly runs: number;
  readonly tokens: number;
  readonly knownCostUsd: number;
  readonly isPriced: boolean;
  /** The highest number of hops so far. */
  readonly hops: number;
}

export const noFigures: RootFigures = { runs: 0, tokens: 0, knownCostUsd: 0, isPriced: true, hops: 0 };

export type LimitName = "hops" | "runs" | "tokens" | "costUsd" | "pingPong";

export interface Refusal {
  readonly limit: LimitName;
  readonly allowed: number;
  readonly figure: number;
}

/** Reserves a run under a root. Returns the new figures or the exceeded limit. `pairCount` includes this message. */
export function reserveRun(
  figures: RootFigures,
  run: { readonly hops: number; readonly pairCount: number | null },
  limits: BudgetLimits,
): { readonly figures: RootFigures } | { readonly refusal: Refusal } {
  const next = { ...figures, runs: figures.runs + 1, hops: Math.max(figures.hops, run.hops) };
  const refusal =
    beyond("hops", run.hops, limits.hops) ??
    beyond("runs", next.runs, limits.runs) ??
    beyond("pingPong", run.pairCount ?? 0, limits.pingPong) ??
    overSpent(figures, limits);
  return refusal === null ? { figures: next } : { refusal };
}

/** Adds the usage of a step. After a step with an unknown price, the total cost is unknown. */
export function spend(figures: RootFigures, usage: RunUsage): RootFigures {
  return {
    ...figures,
    tokens: figures.tokens + (usage.totalTokens ?? 0),
    knownCostUsd: figures.knownCostUsd + (usage.costUsd ?? 0),
    isPriced: figures.isPriced && usage.costUsd !== undefined,
  };
}

/** The limit on tokens or cost that a root exceeds; `null`: none. */
export function overSpent(figures: RootFigures, limits: BudgetLimits): Refusal | null {
  return (
    beyond("tokens", figures.tokens, limits.tokens) ?? beyond("costUsd", figures.knownCostUsd, limits.costUsd)
  );
}

export function figuresOf(rootId: string, figures: RootFigures): BudgetFigures {
  const { runs, tokens, knownCostUsd, isPriced, hops } = figures;
  return { rootId, runs, tokens, costUsd: isPriced ? knownCostUsd : null, hops };
}

export function addUsage(a: RunUsage, b: RunUsage): RunUsage {
  const fields = ["input", "output", "cacheRead", "cacheWrite", "totalTokens"] as const;
  const sum = Object.fromEntries(fields.map((field) => [field, (a[field] ?? 0) + (b[field] ?? 0)]));
  if (a.costUsd === undefined || b.costUsd === undefined) return sum;
  return { ...sum, costUsd: a.costUsd + b.costUsd };
}

export const noUsage: RunUsage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  costUsd: 0,
};

export function budgetExceeded(rootId: string, { limit, allowed, figure }: Refusal): SkeinError {
  return new SkeinError("budget_exceeded", { rootId, limit, allowed, figure });
}

function beyond(limit: LimitName, figure: number, allowed: number | null): Refusal | null {
  return allowed !== null && figure > allowed ? { limit, allowed, figure } : null;
}
