import type { RootFigures } from "../budget.ts";
import { addUsage, budgetExceeded, figuresOf, noFigures, overSpent, reserveRun, spend } from "../budget.ts";
import type { BudgetFigures, HeldRun, RootRef, RunUsage } from "../contract.ts";
import type { RunLedger } from "./run-ledger.ts";

/** Throws `budget_exceeded` if a run under this root would be refused now. */
export function checkBudget(ledger: RunLedger, { rootId, hops }: RootRef): void {
  const figures = figuresOrNone(ledger, rootId);
  const reserved = reserveRun(figures, { hops, pairCount: null }, ledger.options.limits);
  if ("refusal" in reserved) throw budgetExceeded(rootId, reserved.refusal);
}

export function readBudget(ledger: RunLedger, rootId: string): BudgetFigures | null {
  const figures = readFigures(ledger, rootId);
  return figures === null ? null : figuresOf(rootId, figures);
}

/** Adds usage to a run and to the roots of all input in its turn. Throws after the commit, so that the usage is recorded. */
export function chargeRun(ledger: RunLedger, held: HeldRun, usage: RunUsage): void {
  const refusal = ledger.change("unsynced", () => {
    const line = ledger.heldLine(held);
    const sql = "UPDATE runs SET usage = ? WHERE run_id = ?";
    ledger.run(sql, JSON.stringify(addUsage(line.usage, usage)), line.runId);
    const merged = ledger.all("SELECT root FROM runs WHERE merged_into = ? ORDER BY seq", line.runId);
    const roots = [...new Set([line.rootId, ...merged.map(({ root }) => String(root))])];
    const refusals = roots.flatMap((rootId) => {
      const figures = spend(figuresOrNone(ledger, rootId), usage);
      writeFigures(ledger, rootId, figures);
      const over = overSpent(figures, ledger.options.limits);
      return over === null ? [] : [{ rootId, over }];
    });
    return refusals[0];
  });
  if (refusal !== undefined) throw budgetExceeded(refusal.rootId, refusal.over);
}

function readFigures(ledger: RunLedger, rootId: string): RootFigures | null {
  const row = ledger.get("SELECT runs, tokens, cost, priced, hops FROM budgets WHERE root = ?", rootId);
  if (row === undefined) return null;
  return {
    runs: Number(row.runs),
    tokens: Number(row.tokens),
    knownCostUsd: Number(row.cost),
    isPriced: Number(row.priced) === 1,
    hops: Number(row.hops),
  };
}

export function figuresOrNone(ledger: RunLedger, rootId: string): RootFigures {
  return readFigures(ledger, rootId) ?? noFigures;
}

export function writeFigures(ledger: RunLedger, rootId: string, figures: RootFigures): void {
  const { runs, tokens, knownCostUsd, isPriced, hops } = figures;
  ledger.run(
    `INSERT OR REPLACE INTO budgets (root, runs, tokens, cost, priced, hops, touched_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    rootId,
    runs,
    tokens,
    knownCostUsd,
    isPriced ? 1 : 0,
    hops,
    ledger.now(),
  );
}

/** The number of messages between a pair of sessions under a root, including this one. */
export function pairCount(ledger: RunLedger, rootId: string, pair: readonly [string, string]): number {
  const [a, b] = pair.toSorted() as [string, string];
  const sql = "SELECT count FROM budget_pairs WHERE root = ? AND a = ? AND b = ?";
  return Number(ledger.get(sql, rootId, a, b)?.count ?? 0) + 1;
}

export function countPair(ledger: RunLedger, rootId: string, pair: readonly [string, string]): void {
  const [a, b] = pair.toSorted() as [string, string];
  ledger.run(
    `INSERT INTO budget_pairs (root, a, b, count) VALUES (?, ?, ?, 1)
     ON CONFLICT (root, a, b) DO UPDATE SET count = count + 1`,
    rootId,
    a,
    b,
  );
}
