import { describe, expect, test } from "vitest";
import type { Case } from "../../src/entry-conformance.ts";
import { saboteurs, storeConformance } from "../../src/entry-conformance.ts";
import { createStore } from "../../src/entry-store.ts";

const capabilities = { reopen: false, powerCut: false };

async function failedRules(cases: readonly Case[]): Promise<string[]> {
  const failed: string[] = [];
  for (const { id, run } of cases) await run().catch(() => failed.push(id));
  return failed;
}

describe("the conformance kit", () => {
  test.each(saboteurs.map((each) => [each.name, each.breaks, each] as const))(
    "[KIT1] catches the store where %s, on %s",
    async (_, rule, saboteur) => {
      const cases = storeConformance({
        create: async () => ({ store: saboteur.wrap(await createStore({ memory: true })) }),
        capabilities,
      });
      expect(await failedRules(cases)).toContain(rule);
    },
  );

  test("[KIT1] has at least twelve saboteurs, over every port", () => {
    expect(saboteurs.length).toBeGreaterThanOrEqual(12);
    const ports = new Set(saboteurs.map(({ breaks }) => breaks.replace(/\d+$/, "")));
    expect([...ports].toSorted()).toEqual(["RCH", "SB", "SR", "SS", "ST", "SW"]);
  });

  test("[KIT2] a declined rule is left out, and an unknown one is an error", () => {
    const harness = { create: async () => ({ store: await createStore({ memory: true }) }), capabilities };
    const all = storeConformance(harness);
    const some = storeConformance({ ...harness, declines: [{ rule: "SB1", because: "no blobs" }] });
    expect(all.filter((each) => !some.some((other) => other.id === each.id)).map((each) => each.id)).toEqual([
      "SB1",
    ]);
    expect(() => storeConformance({ ...harness, declines: [{ rule: "XX9", because: "?" }] })).toThrow("XX9");
  });

  test("[KIT2] a harness that declares a capability without providing it fails", async () => {
    const [first] = storeConformance({
      create: async () => ({ store: await createStore({ memory: true }) }),
      capabilities: { reopen: true, powerCut: false },
    }).filter((each) => each.id === "ST19");
    await expect(first?.run()).rejects.toThrow("declares reopen");
  });
});
