import fc from "fast-check";
import { expect, test } from "vitest";
import { reachFilter } from "./list-query.ts";

const names = ["a", "b", "c", "d", "e"];
const kin = fc.uniqueArray(
  fc.record({
    key: fc.constantFrom(...names),
    agentId: fc.constantFrom("main", "research"),
    meta: fc.record({ spawnedBy: fc.constantFrom(...names, "gone") }, { requiredKeys: [] }),
  }),
  { selector: ({ key }) => key },
);

test("[RCH2] exactly the sessions whose lineage leads to the key are in the tree, also with a cycle", () => {
  const reach = fc.record({
    treeOf: fc.constantFrom(null, ...names, "gone"),
    descendants: fc.boolean(),
    agentIds: fc.subarray(["main", "research"]),
  });
  fc.assert(
    fc.property(kin, reach, (sessions, { treeOf, descendants, agentIds }) => {
      const isReached = reachFilter({ treeOf, descendants, agentIds }, sessions);
      for (const session of sessions) {
        const line: (string | undefined)[] = [session.key];
        // A session never has more ancestors than there are sessions, even in a cycle.
        for (let steps = 0; descendants && steps <= sessions.length; steps++) {
          line.push(sessions.find(({ key }) => key === line.at(-1))?.meta.spawnedBy);
        }
        const isKin = treeOf !== null && line.includes(treeOf);
        expect(isReached(session)).toBe(isKin || agentIds.includes(session.agentId));
      }
    }),
  );
});

test("[RCH1] no reach, and every agent, match everything", () => {
  const other = { key: "x", agentId: "other" };
  expect(reachFilter(undefined, [])(other)).toBe(true);
  expect(reachFilter({ treeOf: null, agentIds: "all" }, [])(other)).toBe(true);
  expect(reachFilter({ treeOf: null, agentIds: [] }, [])(other)).toBe(false);
});
