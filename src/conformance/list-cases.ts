import assert from "node:assert/strict";
import type { EntryDraft } from "../core/seal.ts";
import type { SessionSort, Store } from "../store/contract.ts";
import { alice, create, laterMillisecond, refused } from "./expect.ts";
import type { CaseTemplate } from "./harness.ts";

/** An answer that used tokens. `cost` is `null` if its price is unknown. */
function answer(totalTokens: number, cost: number | null): EntryDraft {
  const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const usage = { ...none, totalTokens, cost: { ...none, total: cost ?? 0 } };
  const made = { api: "a", provider: "p", model: "m", usage, stopReason: "stop" as const, timestamp: 2 };
  const price = cost === null ? { skein: { costKnown: false } } : {};
  const content = [{ type: "text" as const, text: "done" }];
  return { type: "message", message: { role: "assistant", content, ...made, ...price } };
}

/** The name, tokens and cost of each session, in creation order. The last session is used first. */
const spent = [
  ["beta", 5, 0.25],
  ["Alpha", 9, null],
  ["été", 7, 1.5],
  ["zeta", 5, 0.000_001],
] as const;

/** By session ID, which is the session's index in `spent`. */
const orders: Readonly<Record<SessionSort, readonly string[]>> = {
  updated: ["2", "1", "0", "3"],
  created: ["3", "2", "1", "0"],
  tokens: ["1", "2", "3", "0"],
  cost: ["2", "0", "3", "1"],
  name: ["1", "0", "3", "2"],
};

async function listByPages(store: Store, sort: SessionSort): Promise<string[]> {
  const seen: string[] = [];
  for (let cursor: string | null = "", pages = 0; cursor !== null && pages < 9; pages++) {
    const from: { cursor?: string } = cursor === "" ? {} : { cursor };
    const page = await store.sessions.list(alice, { sort, limit: 1, ...from });
    seen.push(...page.sessions.map(({ sessionId }) => sessionId));
    cursor = page.nextCursor;
  }
  return seen;
}

/** Cases for lists that are sorted by other fields. */
export const listCases: readonly CaseTemplate[] = [
  {
    id: "ST31",
    title: "a list in each order, page by page; a cursor from a different order is rejected",
    async run({ store }) {
      for (const [index, [displayName]] of spent.entries()) {
        await create(store, alice, String(index), { displayName });
        await laterMillisecond();
      }
      for (const index of [3, 0, 1, 2]) {
        const [, tokens, cost] = spent[index] ?? spent[0];
        await store.sessions.append(alice, String(index), [{ draft: answer(tokens, cost) }]);
        await laterMillisecond();
      }
      for (const [sort, order] of Object.entries(orders) as [SessionSort, readonly string[]][]) {
        const seen = await listByPages(store, sort);
        // Sessions with the same value can appear in any order, but each must appear exactly once.
        if (sort === "tokens") assert.deepEqual([seen.slice(0, 2), seen.length], [order.slice(0, 2), 4]);
        else assert.deepEqual(seen, order);
        assert.equal(new Set(seen).size, spent.length);
      }
      const { nextCursor } = await store.sessions.list(alice, { sort: "name", limit: 1 });
      const cursor = nextCursor ?? "";
      await refused("invalid_arguments", () => store.sessions.list(alice, { sort: "cost", cursor }));
    },
  },
];
