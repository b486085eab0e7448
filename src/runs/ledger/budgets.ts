import type { RootFigures } from "../budget.ts";
import { noFigures } from "../budget.ts";
import type { RunLedger } from "./run-ledger.ts";

/** The figures of roots. */

export function readFigures(ledger: RunLedger, rootId: string): RootFigures | null {
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

/** How many messages a pair of sessions will have exchanged under a root, this one with them. */
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
