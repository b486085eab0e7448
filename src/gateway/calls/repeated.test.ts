import { describe, expect, test } from "vitest";
import { payloadText, Repeated } from "./repeated.ts";

function thrown(): never {
  throw new Error("no");
}

describe("payloads that are answered with again", () => {
  test("[GBN1] is found once for as long as the mark stays, and anew when it has changed", async () => {
    const lists = new Repeated<{ readonly found: number }>(2);
    let found = 0;
    const get = (name: string, mark: string) => lists.get(name, mark, async () => ({ found: ++found }));
    const first = await get("a", "1");
    expect(await get("a", "1")).toBe(first);
    expect(await get("a", "2")).toEqual({ found: 2 });
    expect(await get("b", "2")).toEqual({ found: 3 });
    expect(await get("c", "2")).toEqual({ found: 4 });
    // Of the oldest nothing is remembered.
    expect(await get("a", "2")).toEqual({ found: 5 });
  });

  test("[GBN5] who asks while it is being found waits for that, and what failed is looked for again", async () => {
    const lists = new Repeated<{ readonly found: number }>(2);
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

  test("[GBN1] the text of one that repeats is made once, of any other each time", async () => {
    let made = 0;
    const payload = { toJSON: () => ({ made: ++made }) };
    expect([payloadText(payload), payloadText(payload)]).toEqual(['{"made":1}', '{"made":2}']);
    const kept = await new Repeated<object>(1).get("a", "1", async () => payload);
    expect([payloadText(kept), payloadText(kept)]).toEqual(['{"made":3}', '{"made":3}']);
    expect(payloadText(undefined)).toBe("null");
  });
});
