import { SkeinError } from "../core/errors.ts";
import type { BudgetFigures, BudgetLimits, RunUsage } from "./contract.ts";

/** One request and all that it sets off share a root, and the root has limits. */

export const defaultLimits: BudgetLimits = { hops: 8, runs: 100, tokens: null, costUsd: null, pingPong: 5 };

/** What a root has come to, as it is kept: what is known of the cost, and whether that is all of it. */
export interface RootFigures {
  readonly runs: number;
  readonly tokens: number;
  readonly knownCostUsd: number;
  readonly isPriced: boolean;
  /** The highest so far. */
  readonly hops: number;
}

export const noFigures: RootFigures = { runs: 0, tokens: 0, knownCostUsd: 0, isPriced: true, hops: 0 };

export type LimitName = "hops" | "runs" | "tokens" | "costUsd" | "pingPong";

export interface Refusal {
  readonly limit: LimitName;
  readonly allowed: number;
  readonly figure: number;
}

/** Reserves a run under a root: the new figures, or the limit that is in the way. `pairCount`: with this message. */
export function reserveRun(
  figures: RootFigures,
  asked: { readonly hops: number; readonly pairCount: number | null },
  limits: BudgetLimits,
): { readonly figures: RootFigures } | { readonly refusal: Refusal } {
  const next = { ...figures, runs: figures.runs + 1, hops: Math.max(figures.hops, asked.hops) };
  const refusal =
    beyond("hops", asked.hops, limits.hops) ??
    beyond("runs", next.runs, limits.runs) ??
    beyond("pingPong", asked.pairCount ?? 0, limits.pingPong) ??
    overSpent(figures, limits);
  return refusal === null ? { figures: next } : { refusal };
}

/** What a step cost, added. A step whose price is not known makes the sum a part of the truth. */
export function spend(figures: RootFigures, usage: RunUsage): RootFigures {
  return {
    ...figures,
    tokens: figures.tokens + (usage.totalTokens ?? 0),
    knownCostUsd: figures.knownCostUsd + (usage.costUsd ?? 0),
    isPriced: figures.isPriced && usage.costUsd !== undefined,
  };
}

/** The limit on tokens or money that a root is over. */
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
  const added = (field: "input" | "output" | "cacheRead" | "cacheWrite" | "totalTokens") =>
    (a[field] ?? 0) + (b[field] ?? 0);
  const sum = {
    input: added("input"),
    output: added("output"),
    cacheRead: added("cacheRead"),
    cacheWrite: added("cacheWrite"),
    totalTokens: added("totalTokens"),
  };
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
