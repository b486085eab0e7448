import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AccessTarget } from "./lineage.ts";
import { inTreeBy } from "./lineage.ts";

type Spawners = Readonly<Record<string, string>>;

function targetIn(spawners: Spawners, key: string): AccessTarget {
  return { userId: "ann", agentId: "main", key, spawnedBy: spawners[key] ?? null };
}

const within = (spawners: Spawners, ancestor: string, key: string, most?: number) =>
  inTreeBy((each) => spawners[each] ?? null, most)(ancestor, targetIn(spawners, key));

describe("the tree of an asker", () => {
  const family: Spawners = {
    "agent:a:c": "agent:main:m",
    "agent:b:g": "agent:a:c",
    "agent:main:h": "agent:b:g",
  };

  test.each([
    ["agent:a:c", true],
    ["agent:b:g", true],
    ["agent:main:h", true],
    ["agent:main:m", false],
    ["agent:main:other", false],
  ])("[ACC5] %s: %s, at any depth and under any agent", async (key, expected) => {
    expect(await within(family, "agent:main:m", key)).toBe(expected);
  });

  test("[ACC5] a child does not have its parent in its tree, nor its sister", async () => {
    const both: Spawners = { ...family, sister: "agent:main:m" };
    expect(await within(both, "agent:a:c", "agent:main:m")).toBe(false);
    expect(await within(both, "agent:a:c", "sister")).toBe(false);
    expect(await within(both, "agent:a:c", "agent:main:h")).toBe(true);
  });

  test("[ACC5] a lineage that goes round ends, and is its members' alone", async () => {
    const round: Spawners = { a: "b", b: "c", c: "a", d: "a", e: "e" };
    expect(await within(round, "x", "a")).toBe(false);
    expect(await within(round, "x", "d")).toBe(false);
    expect(await within(round, "x", "e")).toBe(false);
    expect(await within(round, "c", "d")).toBe(true);
  });

  test("[ACC5] a lineage that goes on and on is nobody's, and costs so many lookups at the most", async () => {
    let lookups = 0;
    const endless = inTreeBy(async (key) => `${lookups++}-${key.slice(0, 10)}`);
    expect(await endless("x", { userId: null, agentId: "a", key: "k", spawnedBy: "p" })).toBe(false);
    expect(lookups).toBeLessThan(100);
    const chain = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`${n + 1}`, `${n}`]));
    expect(await within(chain, "0", "100")).toBe(true);
    expect(await within(chain, "0", "101")).toBe(false);
    expect(await within(chain, "0", "200", 500)).toBe(true);
  });

  test("[ACC5] is that of all ancestors, whatever points where", async () => {
    const key = fc.constantFrom("a", "b", "c", "d", "e", "f");
    const closure = (spawners: Spawners, from: string) => {
      const found = new Set<string>();
      for (let turn = 0; turn < 6; turn++)
        for (const each of [from, ...found]) if (spawners[each] !== undefined) found.add(spawners[each]);
      return found;
    };
    await fc.assert(
      fc.asyncProperty(fc.dictionary(key, key), key, key, async (spawners, ancestor, target) => {
        fc.pre(ancestor !== target);
        expect(await within(spawners, ancestor, target)).toBe(closure(spawners, target).has(ancestor));
      }),
    );
  });

  test("[ACC6] a lookup that fails is passed on", async () => {
    const failing = inTreeBy(() => Promise.reject(new Error("busy")));
    const child = { userId: null, agentId: "a", key: "k", spawnedBy: "x" };
    expect(await failing("x", child)).toBe(true);
    await expect(failing("y", child)).rejects.toThrow("busy");
  });
});
