import { describe, expect, test } from "vitest";
import { PayloadCache, payloadText } from "./payload-cache.ts";

function thrown(): never {
  throw new Error("no");
}

describe("cached payloads", () => {
  test("are computed once while the mark stays the same, and again when it changes", async () => {
    const lists = new PayloadCache<{ readonly found: number }>({ most: 2 });
    let found = 0;
    const get = (name: string, mark: string) => lists.get(name, mark, async () => ({ found: ++found }));
    const first = await get("a", "1");
    expect(await get("a", "1")).toBe(first);
    expect(await get("a", "2")).toEqual({ found: 2 });
    expect(await get("b", "2")).toEqual({ found: 3 });
    expect(await get("c", "2")).toEqual({ found: 4 });
    // The oldest payload is no longer cached.
    expect(await get("a", "2")).toEqual({ found: 5 });
  });

  test("concurrent callers share one computation, and a failed one is repeated", async () => {
    const lists = new PayloadCache<{ readonly found: number }>({ most: 2 });
    const { promise, resolve } = Promise.withResolvers<{ readonly found: number }>();
    let asked = 0;
    const find = () => {
      asked += 1;
      return promise;
    };
    const both = [lists.get("a", "1", find), lists.get("a", "1", find)];
    const changed = lists.get("a", "2", async () => ({ found: 2 }));
    resolve({ found: 1 });
    expect(await Promise.all([...both, changed])).toEqual([{ found: 1 }, { found: 1 }, { found: 2 }]);
    expect(asked).toBe(1);
    for (const [mark, fail] of [
      ["1", () => Promise.reject(new Error("no"))],
      ["2", thrown],
    ] as const) {
      await expect(lists.get("b", mark, fail)).rejects.toThrow("no");
      expect(await lists.get("b", mark, async () => ({ found: 3 }))).toEqual({ found: 3 });
    }
  });

  test("are not stored if the mark changes or becomes unavailable meanwhile", async () => {
    const pages = new PayloadCache<{ readonly found: number }>({ most: 2 });
    let found = 0;
    const get = (markNow: () => string) => pages.get("a", "1", async () => ({ found: ++found }), markNow);
    expect(await get(() => "2")).toEqual({ found: 1 });
    expect(await get(thrown)).toEqual({ found: 2 });
    expect(await get(() => "1")).toEqual({ found: 3 });
    expect(await get(() => "1")).toEqual({ found: 3 });
  });

  test("are limited in total size, and one that would exceed it is not stored", async () => {
    const pages = new PayloadCache<{ readonly text: string }>({ most: 100, mostText: 800 });
    let found = 0;
    const get = async (name: string, length = 60) => {
      const before = found;
      await pages.get(name, "1", async () => {
        found += 1;
        return { text: "x".repeat(length) };
      });
      return found > before;
    };
    const names = Array.from({ length: 11 }, (_, index) => `n${index}`);
    for (const name of names) expect(await get(name)).toBe(true);
    for (const name of names) expect(await get(name), name).toBe(false);
    // There is room for eleven payloads, so only the oldest is evicted.
    expect(await get("more")).toBe(true);
    expect([await get("more"), await get("n1")]).toEqual([false, false]);
    expect([await get("long", 100), await get("long", 100), await get("n2")]).toEqual([true, true, false]);
    expect(await get("n0")).toBe(true);
  });

  test("a value without a text form is computed each time", async () => {
    const pages = new PayloadCache<object>({ most: 2, mostText: 800 });
    const payload = {
      toJSON: () => {
        throw new RangeError("Invalid string length");
      },
    };
    let found = 0;
    const find = async () => {
      found += 1;
      return payload;
    };
    expect([await pages.get("a", "1", find), await pages.get("a", "1", find)]).toEqual([payload, payload]);
    expect(found).toBe(2);
  });

  test("the text of a repeated payload is encoded once, any other each time", async () => {
    let made = 0;
    const payload = { toJSON: () => ({ made: ++made }) };
    expect([payloadText(payload), payloadText(payload)]).toEqual(['{"made":1}', '{"made":2}']);
    const kept = await new PayloadCache<object>({ most: 1 }).get("a", "1", async () => payload);
    expect([payloadText(kept), payloadText(kept)]).toEqual(['{"made":3}', '{"made":3}']);
    expect(payloadText(undefined)).toBe("null");
  });
});
