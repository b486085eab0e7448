import { SkeinError } from "../../core/errors.ts";
import type { Script } from "../../core/script.ts";
import type { BudgetFigures, BudgetLimits, HeldRun, RootRef, RunUsage } from "../contract.ts";
import type { RunLedger, RunTransaction } from "./run-ledger.ts";

export const defaultLimits: BudgetLimits = { hops: 8, runs: 100, tokens: null, costUsd: null, pingPong: 5 };

/** The stored usage of a root. `isPriced` is `true` if `knownCostUsd` is the total cost. */
export interface RootFigures {
  readonly runs: number;
  readonly tokens: number;
  readonly knownCostUsd: number;
  readonly isPriced: boolean;
  /** The highest hop count so far. */
  readonly hops: number;
}

export const noFigures: RootFigures = { runs: 0, tokens: 0, knownCostUsd: 0, isPriced: true, hops: 0 };

export type LimitName = "hops" | "runs" | "tokens" | "costUsd" | "pingPong";

export interface Refusal {
  readonly limit: LimitName;
  readonly allowed: number;
  readonly figure: number;
}

/** Reserves a run under a root. Returns the new usage or the exceeded limit. `pairCount` includes this message. */
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

/** Adds a step's usage. If any step has an unknown price, the total cost is unknown. */
export function spend(figures: RootFigures, usage: RunUsage): RootFigures {
  return {
    ...figures,
    tokens: figures.tokens + (usage.totalTokens ?? 0),
    knownCostUsd: figures.knownCostUsd + (usage.costUsd ?? 0),
    isPriced: figures.isPriced && usage.costUsd !== undefined,
  };
}

/** Returns the token or cost limit that a root exceeds, or `null` if it exceeds none. */
export function overSpent(figures: RootFigures, limits: BudgetLimits): Refusal | null {
  return (
    beyond("tokens", figures.tokens, limits.tokens) ?? beyond("costUsd", figures.knownCostUsd, limits.costUsd)
  );
}

export function figuresOf(rootId: string, figures: RootFigures): BudgetFigures {
  const { runs, tokens, knownCostUsd, isPriced, hops } = figures;
  return { rootId, runs, tokens, costUsd: isPriced ? knownCostUsd : null, knownCostUsd, hops };
}

export function addUsage(a: RunUsage, b: RunUsage): RunUsage {
  const fields = ["input", "output", "cacheRead", "cacheWrite", "totalTokens"] as const;
  const sum = Object.fromEntries(fields.map((field) => [field, (a[field] ?? 0) + (b[field] ?? 0)]));
  if (a.costUsd === undefined || b.costUsd === undefined) return sum;
  return { ...sum, costUsd: a.costUsd + b.costUsd };
}

export function budgetExceeded(rootId: string, { limit, allowed, figure }: Refusal): SkeinError {
  return new SkeinError("budget_exceeded", { rootId, limit, allowed, figure });
}

function beyond(limit: LimitName, figure: number, allowed: number | null): Refusal | null {
  return allowed !== null && figure > allowed ? { limit, allowed, figure } : null;
}

/** Throws `budget_exceeded` if a run under this root would be rejected now. */
export function* checkBudget(tx: RunTransaction, { rootId, hops }: RootRef): Script<void> {
  const figures = yield* figuresOrNone(tx, rootId);
  const reserved = reserveRun(figures, { hops, pairCount: null }, tx.options.limits);
  if ("refusal" in reserved) throw budgetExceeded(rootId, reserved.refusal);
}

export function* readBudget(tx: RunTransaction, rootId: string): Script<BudgetFigures | null> {
  const figures = yield* readFigures(tx, rootId);
  return figures === null ? null : figuresOf(rootId, figures);
}

/**
 * Adds usage to a run and to the root of every input in its turn. Throws only after the commit, so that the usage is
 * recorded.
 */
export async function chargeRun(ledger: RunLedger, held: HeldRun, usage: RunUsage): Promise<void> {
  const exceeded = await ledger.change("unsynced", held, (tx) => addCharge(tx, held, usage));
  if (exceeded !== null) throw budgetExceeded(exceeded.rootId, exceeded.refusal);
}

/** Adds usage to a run and its roots. Returns the first root that exceeds a limit, or `null` if there is none. */
function* addCharge(
  tx: RunTransaction,
  held: HeldRun,
  usage: RunUsage,
): Script<{ readonly rootId: string; readonly refusal: Refusal } | null> {
  const line = yield* tx.heldLine(held);
  const sql = "UPDATE runs SET usage = ? WHERE run_id = ?";
  yield* tx.run(sql, JSON.stringify(addUsage(line.usage, usage)), line.runId);
  const merged = yield* tx.all("SELECT root FROM runs WHERE merged_into = ? ORDER BY seq", line.runId);
  const roots = new Set([line.rootId, ...merged.map(({ root }) => String(root))]);
  let exceeded: { readonly rootId: string; readonly refusal: Refusal } | null = null;
  for (const rootId of roots) {
    const figures = spend(yield* figuresOrNone(tx, rootId), usage);
    yield* writeFigures(tx, rootId, figures);
    const refusal = overSpent(figures, tx.options.limits);
    if (refusal !== null) exceeded ??= { rootId, refusal };
  }
  return exceeded;
}

function* readFigures(tx: RunTransaction, rootId: string): Script<RootFigures | null> {
  const row = yield* tx.get("SELECT runs, tokens, cost, priced, hops FROM budgets WHERE root = ?", rootId);
  if (row === undefined) return null;
  return {
    runs: Number(row.runs),
    tokens: Number(row.tokens),
    knownCostUsd: Number(row.cost),
    isPriced: Number(row.priced) === 1,
    hops: Number(row.hops),
  };
}

export function* figuresOrNone(tx: RunTransaction, rootId: string): Script<RootFigures> {
  return (yield* readFigures(tx, rootId)) ?? noFigures;
}

export function* writeFigures(tx: RunTransaction, rootId: string, figures: RootFigures): Script<void> {
  const { runs, tokens, knownCostUsd, isPriced, hops } = figures;
  yield* tx.run(
    `INSERT INTO budgets (root, runs, tokens, cost, priced, hops, touched_at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (root) DO UPDATE SET runs = excluded.runs, tokens = excluded.tokens, cost = excluded.cost,
       priced = excluded.priced, hops = excluded.hops, touched_at = excluded.touched_at`,
    rootId,
    runs,
    tokens,
    knownCostUsd,
    isPriced ? 1 : 0,
    hops,
    tx.now(),
  );
}

/** Counts the messages between a pair of sessions under a root, including this one. */
export function* pairCount(
  tx: RunTransaction,
  rootId: string,
  pair: readonly [string, string],
): Script<number> {
  const [a, b] = pair.toSorted() as [string, string];
  const sql = "SELECT count FROM budget_pairs WHERE root = ? AND a = ? AND b = ?";
  return Number((yield* tx.get(sql, rootId, a, b))?.count ?? 0) + 1;
}

export function* countPair(
  tx: RunTransaction,
  rootId: string,
  pair: readonly [string, string],
): Script<void> {
  const [a, b] = pair.toSorted() as [string, string];
  yield* tx.run(
    `INSERT INTO budget_pairs (root, a, b, count) VALUES (?, ?, ?, 1)
     ON CONFLICT (root, a, b) DO UPDATE SET count = budget_pairs.count + 1`,
    rootId,
    a,
    b,
  );
}
