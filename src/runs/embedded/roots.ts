import type { RootFigures } from "../budget.ts";
import { noFigures } from "../budget.ts";
import type { Books } from "./books.ts";

/** The figures of roots. */

export function figuresOfRoot(books: Books, rootId: string): RootFigures | null {
  const row = books.get("SELECT runs, tokens, cost, priced, hops FROM budgets WHERE root = ?", rootId);
  if (row === undefined) return null;
  return {
    runs: Number(row.runs),
    tokens: Number(row.tokens),
    knownCostUsd: Number(row.cost),
    isPriced: Number(row.priced) === 1,
    hops: Number(row.hops),
  };
}

export function rootFigures(books: Books, rootId: string): RootFigures {
  return figuresOfRoot(books, rootId) ?? noFigures;
}

export function writeFigures(books: Books, rootId: string, figures: RootFigures): void {
  const { runs, tokens, knownCostUsd, isPriced, hops } = figures;
  books.run(
    `INSERT OR REPLACE INTO budgets (root, runs, tokens, cost, priced, hops, touched_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    rootId,
    runs,
    tokens,
    knownCostUsd,
    isPriced ? 1 : 0,
    hops,
    books.now(),
  );
}

/** How many messages a pair of sessions will have exchanged under a root, this one with them. */
export function pairCount(books: Books, rootId: string, pair: readonly [string, string]): number {
  const [a, b] = pair.toSorted() as [string, string];
  const sql = "SELECT count FROM budget_pairs WHERE root = ? AND a = ? AND b = ?";
  return Number(books.get(sql, rootId, a, b)?.count ?? 0) + 1;
}

export function countPair(books: Books, rootId: string, pair: readonly [string, string]): void {
  const [a, b] = pair.toSorted() as [string, string];
  books.run(
    `INSERT INTO budget_pairs (root, a, b, count) VALUES (?, ?, ?, 1)
     ON CONFLICT (root, a, b) DO UPDATE SET count = count + 1`,
    rootId,
    a,
    b,
  );
}
